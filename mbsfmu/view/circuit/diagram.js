// A schematic: components as boxes with their symbols, lines coloured by pressure, arrows by flow.
(() => {
  "use strict";
  const { scaling, number, withUnit } = window.mbsfmuQuantities;
  const { colourOf, gradient } = window.mbsfmuPressureColours;
  const { layoutOf } = window.mbsfmuCircuitLayout;

  // Symbols of hydraulic components after ISO 1219, as paths about their middles, 36 wide and 28 high.
  const circle = (x, y, r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`;
  const box = (x, y, width, height) => `M${x},${y}h${width}v${height}h${-width}z`;
  const ADJUSTED = "M-12,13L12,-11M12,-11l-5,0.5M12,-11l-0.5,5"; // an arrow across what can be adjusted
  const UPWARDS = "M-4,-6L0,-12L4,-6z";
  const THROTTLED = "M-17,0H17M-8,-9Q0,-2 8,-9M-8,9Q0,2 8,9";
  const SEAT = "M-17,0H-5M6,-9L-5,0L6,9M8,0H17";
  const SPRING = "M-9,0l-2,-4l-2,8l-2,-8l-2,8";

  /** By name: `lines` are drawn, `solid` is filled, `dashed` is a pilot line. */
  const SYMBOLS = {
    box: { lines: box(-14, -9, 28, 18) },
    tank: { lines: "M-10,-5V6H10V-5" },
    "pressure-source": { lines: `${circle(0, 0, 12)}M-5,4H5M-5,8H5`, solid: UPWARDS },
    "flow-source": { lines: `${circle(0, 0, 12)}M0,12V-5`, solid: UPWARDS },
    pump: { lines: circle(0, 0, 12), solid: UPWARDS },
    "variable-pump": { lines: circle(0, 0, 12) + ADJUSTED, solid: UPWARDS },
    motor: { lines: `${circle(0, 0, 12)}M12,-2H17M12,2H17`, solid: "M-4,-12L0,-6L4,-12z" },
    cylinder: { lines: `${box(-17, -8, 24, 16)}M-5,-8V8M-2,-8V8M-2,-1.5H17M-2,1.5H17` },
    valve: {
      lines: `${box(-18, -7, 12, 14)}${box(-6, -7, 12, 14)}${box(6, -7, 12, 14)}M-15,7V-7M-9,-7V7M-3,-7v4m-1.5,0h3M3,-7v4m-1.5,0h3M-3,7v-4m-1.5,0h3M3,7v-4m-1.5,0h3M9,7L15,-7M15,7L9,-7`,
    },
    check: { lines: `${SEAT}${circle(3.5, 0, 4.5)}` },
    "pilot-check": { lines: `${SEAT}${circle(3.5, 0, 4.5)}`, dashed: "M-12,14V8L-4,2" },
    shuttle: { lines: `M-17,0H-12M17,0H12M-6,-8L-12,0L-6,8M6,-8L12,0L6,8M0,-8V-14${circle(-4.5, 0, 4.5)}` },
    relief: { lines: `${box(-9, -9, 18, 18)}${SPRING}M4,9V-9M4,-9l-2.5,5M4,-9l2.5,5`, dashed: "M9,5H15V12H4" },
    reducing: { lines: `${box(-9, -9, 18, 18)}${SPRING}M0,9V-9M0,-9l-2.5,5M0,-9l2.5,5`, dashed: "M9,-5H15V-12H0" },
    throttle: { lines: THROTTLED },
    "variable-orifice": { lines: THROTTLED + ADJUSTED },
    restrictor: { lines: "M-17,0H17M-8,-5H8M-8,5H8" },
    accumulator: { lines: "M-7,-5a7,8 0 0,1 14,0V5a7,8 0 0,1 -14,0zM-7,0H7", solid: "M-3,-8H3L0,-3z" },
    hose: { lines: `M-13,-3Q0,14 13,-3${circle(-14, -4, 2)}${circle(14, -4, 2)}` },
    volume: { lines: "M-9,-7h18a7,7 0 0,1 0,14h-18a7,7 0 0,1 0,-14" },
    line: { lines: "M-17,0H17M-12,-4V4M12,-4V4" },
    gauge: { lines: `${circle(0, 0, 11)}M-6,6L6,-6M6,-6l-5,1M6,-6l-1,5` },
    "flow-meter": { lines: `${circle(0, 0, 11)}M-17,0H-11M17,0H11M-7,-3Q0,1 7,-3M-7,3Q0,-1 7,3` },
  };

  const THIN = 3, // of lines without flow
    THICK = 5, // more of lines with the largest one
    LEAST = 0.002, // share of the largest flow below which no arrow is drawn
    READABLE = 0.8, // of the size of words
    DIGITS = 3;

  function draw(tag, attributes = {}, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  const pathOf = (corners) => `M${corners.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L")}`;

  class Circuit {
    constructor(element, data) {
      Object.assign(this, { element, data, values: () => undefined, chosen: -1 });
      this.field = element.querySelector(".circuit-field");
      this.known = element.querySelector(".circuit-detail output");
      this.now = element.querySelector(".circuit-now");
      this.nodes = new Map(data.nodes.map((each) => [each.name, { ...each, marks: [], labels: [] }]));
      this.flows = []; // what shows the flow at a port
      this.components = new Map(data.components.map((each) => [each.name, { data: each, parts: [] }]));
      this.make();
      this.order = [...this.components.values()].filter(({ parts }) => parts.length);
      this.field.addEventListener("keydown", (event) => this.press(event));
      this.field.addEventListener("click", (event) => this.choose(this.order.findIndex(({ parts }) => parts.includes(event.target.closest(".component")))));
      document.addEventListener("units", () => this.rescale());
      this.rescale();
    }

    /** Show values: a function gives that of a source. */
    show(values) {
      this.values = (source) => (typeof source === "number" ? source : source === null ? undefined : values(source));
      if (!this.data.group && this.widen()) this.rescale();
      else this.paint();
    }

    /** Let the scales reach as far as the values of a run that goes on; return whether they had to. */
    widen() {
      const finite = (values) => values.filter(Number.isFinite);
      const pressures = finite([...this.nodes.values()].map((node) => this.values(node.pressure)));
      const [least, greatest] = this.data.pressures ?? [Infinity, -Infinity];
      const ends = [Math.min(least, ...pressures), Math.max(greatest, ...pressures)];
      const most = Math.max(this.data.most, ...finite(this.flows.map(({ port }) => this.flowOf(port))).map(Math.abs));
      if (most === this.data.most && ends[0] === least && ends[1] === greatest) return false;
      Object.assign(this.data, { most, pressures: pressures.length ? ends : this.data.pressures });
      return true;
    }

    // -- made once ------------------------------------------------------------------------------------------

    make() {
      const { units, lines, width, height } = layoutOf(this.data);
      const title = `Circuit ${this.data.name}: ${this.data.components.length} components at ${this.data.nodes.length} nodes`;
      this.svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title });
      this.size = { width, height };
      // Outlines lie below all lines, so that pieces of one node join.
      [this.outlines, this.layer] = [draw("g"), draw("g")];
      this.svg.append(this.outlines, this.layer);
      for (const unit of units) if (unit.node) this.makeNode(unit);
      for (const line of lines) {
        const known = this.components.get(line.component.component.name);
        this.connect(known, line.port, line.corners, line.port.sensed);
      }
      for (const unit of units) if (unit.component) this.makeComponent(unit);
      this.field.append(this.svg);
      this.fitting = this.element.querySelector("[data-do=fit]");
      this.fitting.addEventListener("click", () => {
        this.fitting.setAttribute("aria-pressed", String(this.fitting.getAttribute("aria-pressed") !== "true"));
        this.fit();
      });
      new ResizeObserver(() => this.fit()).observe(this.field);
      this.fit();
    }

    /** As wide as there is room, if its words remain readable, or if all of it is asked for. */
    fit() {
      const wanted = Math.min(this.field.clientWidth / this.size.width, 1);
      const whole = this.fitting.getAttribute("aria-pressed") === "true";
      const factor = whole || wanted > READABLE ? wanted : 1;
      this.svg.setAttribute("width", factor * this.size.width);
      this.svg.setAttribute("height", factor * this.size.height);
      this.fitting.hidden = wanted > READABLE;
    }

    /** A line of a node; the first corner is at the port, where its flow is shown. */
    connect(component, port, corners, sensed = false) {
      const { casing, colour } = this.line(port.node, corners, sensed ? " sensed" : "");
      colour.dataset.port = `${component.data.name}.${port.port}`;
      if (!port.flow.length) return;
      const [[x, y], [nextX, nextY]] = corners;
      const length = Math.hypot(nextX - x, nextY - y) || 1;
      const way = [(nextX - x) / length, (nextY - y) / length];
      const place = [x + way[0] * Math.min(9, length), y + way[1] * Math.min(9, length)];
      const arrow = draw("path", { class: "arrow" });
      this.svg.append(arrow);
      this.flows.push({ component, port, casing, colour, arrow, place, way });
    }

    /** A piece of a node's line, and its outline below. */
    line(node, corners, kind = "") {
      const d = pathOf(corners);
      const casing = draw("path", { d, class: `casing${kind}` });
      const colour = draw("path", { d, class: `oil${kind}`, "data-node": node });
      this.outlines.append(casing);
      this.layer.append(colour);
      this.nodes.get(node).marks.push(colour);
      return { casing, colour };
    }

    makeNode(unit) {
      const node = this.nodes.get(unit.node.name);
      const trunk = unit.x - unit.width / 2 + 6;
      this.line(node.name, [[trunk, unit.trunk.low], [trunk, unit.trunk.high]]);
      const label = draw("text", { class: "pressure", x: trunk + 9, y: unit.bottom - 6 });
      const name = draw("tspan", { class: "name" }, node.name);
      const value = draw("tspan", { dx: 6 });
      label.append(name, value);
      node.labels.push(value);
      this.svg.append(label);
      unit.leaves.forEach((leaf, index) => this.makeLeaf(leaf, trunk, unit.trunk.places[index]));
    }

    /** A component that hangs at the trunk of its node. */
    makeLeaf(leaf, trunk, y) {
      const component = this.components.get(leaf.name);
      const middle = trunk + 38;
      const part = this.part(component, draw("rect", { x: middle - 22, y: y - 16, width: 44, height: 32, rx: 4, class: "box" }));
      part.append(this.symbol(leaf.symbol, middle, y, 0.9));
      const outer = leaf.ports.find((port) => this.nodes.get(port.node).tank);
      let words = middle + 26;
      for (const port of leaf.ports.filter((each) => each !== outer)) {
        this.connect(component, port, [[middle - 22, y], [trunk, y]], port.sensed);
      }
      if (outer) {
        this.makeTank(component, outer, [[middle + 22, y], [middle + 34, y], [middle + 34, y + 4]]);
        words += 24;
      }
      this.words(part, leaf, words, y);
      this.svg.append(part);
    }

    makeComponent(unit) {
      const { component: data, x, top, bottom, width } = unit;
      const component = this.components.get(data.name);
      const part = this.part(component, draw("rect", { x: x - width / 2, y: top, width, height: bottom - top, rx: 5, class: "box" }));
      const y = (top + bottom) / 2;
      part.append(this.symbol(data.symbol, x - width / 2 + 25, y, 1));
      this.words(part, data, x - width / 2 + 48, y);
      for (const each of unit.tanks) this.makeTank(component, each.port, [[each.x, bottom], [each.x, bottom + 15]]);
      this.svg.append(part);
    }

    /** Every port at a tank has a tank of its own, as circuits are drawn. */
    makeTank(component, port, corners) {
      this.connect(component, port, corners, port.sensed);
      const [x, y] = corners[corners.length - 1];
      const holder = this.data.components.find((each) => each.symbol === "tank" && each.ports[0].node === port.node);
      const known = this.components.get(holder.name);
      const part = this.part(known, draw("rect", { x: x - 12, y: y - 6, width: 24, height: 16, class: "box open" }));
      part.append(this.symbol("tank", x, y + 1, 0.8));
      this.svg.append(part);
    }

    part(component, outline) {
      const made = draw("g", { class: "component", "data-component": component.data.name });
      const { name, kind, ports } = component.data;
      const title = draw("title");
      title.textContent = `${name}, ${kind}: ${ports.map(({ port, node }) => `${port} at ${node}`).join(", ")}`;
      made.append(title, outline);
      component.parts.push(made);
      return made;
    }

    symbol(name, x, y, size) {
      const { lines, solid, dashed } = SYMBOLS[name];
      const made = draw("g", { class: "symbol", transform: `translate(${x},${y}) scale(${size})` });
      made.append(draw("path", { d: lines }));
      if (solid) made.append(draw("path", { d: solid, class: "solid" }));
      if (dashed) made.append(draw("path", { d: dashed, class: "dashed" }));
      return made;
    }

    words(part, { name, kind }, x, y) {
      part.append(draw("text", { x, y: y - 2, class: "name" }, name), draw("text", { x, y: y + 11, class: "kind" }, kind));
    }

    // -- as time goes on ------------------------------------------------------------------------------------

    rescale() {
      const { pressures, most } = this.data;
      this.pressure = scaling("Pa", pressures ? Math.max(...pressures.map(Math.abs)) : 0);
      this.flow = scaling("m3/s", most);
      const bar = Object.assign(document.createElement("span"), { className: "circuit-bar" });
      bar.style.background = gradient;
      const told = (value) => number(value / this.pressure.factor, DIGITS);
      const scale = pressures ? ["pressure ", told(pressures[0]), " ", bar, " ", withUnit(told(pressures[1]), this.pressure.unit)] : ["no pressures were recorded"];
      const arrows = most > 0 ? [`; widest line: flow of ${withUnit(number(most / this.flow.factor, DIGITS), this.flow.unit)}`] : [];
      this.element.querySelector(".circuit-legend").replaceChildren(...scale, ...arrows);
      this.paint();
    }

    /** The share of the scale that a pressure in Pa is at. */
    share(pressure) {
      const [least, greatest] = this.data.pressures;
      return greatest > least ? (pressure - least) / (greatest - least) : 0.5;
    }

    paint() {
      for (const node of this.nodes.values()) {
        const value = this.values(node.pressure);
        const known = value !== undefined && value !== null;
        const colour = known ? colourOf(this.share(value)) : "";
        if (colour !== node.colour) for (const mark of node.marks) mark.style.color = colour;
        node.colour = colour;
        const text = known ? withUnit(number(value / this.pressure.factor, DIGITS), this.pressure.unit) : "";
        for (const label of node.labels) if (label.textContent !== text) label.textContent = text;
      }
      for (const each of this.flows) this.paintFlow(each);
      this.tellNow();
    }

    flowOf({ flow }) {
      const values = flow.map(([source, sign]) => [this.values(source), sign]);
      return flow.length && values.every(([value]) => value !== undefined && value !== null)
        ? values.reduce((sum, [value, sign]) => sum + sign * value, 0)
        : undefined;
    }

    paintFlow({ port, casing, colour, arrow, place: [x, y], way: [a, b] }) {
      const share = (this.flowOf(port) ?? 0) / this.data.most || 0;
      const width = THIN + THICK * Math.abs(share);
      colour.style.strokeWidth = width;
      casing.style.strokeWidth = width + 2;
      arrow.style.display = Math.abs(share) > LEAST ? "" : "none";
      // Its head is towards the node where oil leaves the component, with the size of the flow.
      const long = Math.sign(share) * (4 + 3 * Math.abs(share));
      const wide = 4 + 4 * Math.abs(share);
      const corner = (along, across) => `${(x + a * along - b * across).toFixed(1)},${(y + b * along + a * across).toFixed(1)}`;
      arrow.setAttribute("d", `M${corner(long, 0)}L${corner(-long, wide)}L${corner(-long, -wide)}z`);
    }

    // -- a chosen component ---------------------------------------------------------------------------------

    press(event) {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const last = this.order.length - 1;
      const next = { ArrowRight: Math.min(this.chosen + 1, last), ArrowLeft: Math.max(this.chosen - 1, 0), Home: 0, End: last, Escape: -1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      this.choose(next);
      this.order[next]?.parts[0].scrollIntoView({ block: "nearest", inline: "nearest" });
    }

    choose(index) {
      this.order[this.chosen]?.parts.forEach((part) => part.classList.remove("chosen"));
      this.chosen = index;
      const { data, parts } = this.order[index] ?? {};
      parts?.forEach((part) => part.classList.add("chosen"));
      const words = data && data.ports.map(({ port, node, sensed }) => `${port} ${sensed ? "reads" : "at"} ${node}`);
      this.known.textContent = data ? `${data.name}, ${data.kind}: ${words.join(", ")}.` : "";
      this.tellNow();
    }

    /** The chosen component's values, which go on changing and are not read out. */
    tellNow() {
      const { data } = this.order?.[this.chosen] ?? {};
      const texts = (data?.ports ?? []).flatMap((port) => {
        const pressure = this.values(this.nodes.get(port.node).pressure);
        const flow = this.flowOf(port);
        const told = [[pressure, this.pressure, ""], [flow === undefined ? flow : Math.abs(flow), this.flow, flow < 0 ? "in " : "out "]]
          .filter(([value]) => value !== undefined && value !== null)
          .map(([value, { factor, unit }, before]) => before + withUnit(number(value / factor, DIGITS), unit));
        return told.length ? [`${port.port} ${told.join(", ")}`] : [];
      });
      const text = texts.join("; ");
      if (this.now.textContent !== text) this.now.textContent = text;
    }
  }

  for (const element of document.querySelectorAll(".mbsfmu-circuit"))
    element.circuit ??= new Circuit(element, JSON.parse(element.querySelector("script.data").textContent));

  // Those of a recorded run take their values from the curves of the page's plots, at the time that these show.
  for (const { circuit } of window.mbsfmuPlots ? document.querySelectorAll(".mbsfmu-circuit") : []) {
    const group = window.mbsfmuPlots.groups.get(circuit.data.group);
    if (!group) continue;
    const curves = new Map(group.panels.flatMap((panel) => panel.curves.map((curve) => [curve.label, curve])));
    const valueAt = (place) => (source) => {
      const curve = curves.get(source);
      return curve?.y[window.mbsfmuPlotData.nearest(curve.x, place)];
    };
    group.following.push((place) => place !== null && circuit.show(valueAt(place)));
    circuit.show(valueAt(group.place ?? group.ends[0]));
  }
})();
