// Plots over one axis: zoomed and moved together, with the values of all curves where the pointer or the keyboard is.
(() => {
  "use strict";
  const { written, scaling, number, withUnit, titled } = window.mbsfmuQuantities;
  const { save } = window.mbsfmuDownload;
  const HEIGHT = 220, SMALLEST = 1e-7, DECADES = 8, COLOURS = 8, NEAR = "300px";

  // -- data ------------------------------------------------------------------------------------------------
  const bytes = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));

  function places(grid) {
    if (grid.values !== undefined) return Array.from(new Float64Array(bytes(grid.values).buffer));
    const result = [grid.start];
    let place = 0, pending = 0;
    for (const each of bytes(grid.jumps)) {
      pending += each;
      if (each === 255) continue;
      place += pending;
      pending = 0;
      result.push(grid.start + place * grid.step);
    }
    return result;
  }

  const values = (text) =>
    Array.from(new Float32Array(bytes(text).buffer), (each) => (Number.isFinite(each) ? each : null));

  // Curves of several grids over all their places; undefined where a curve has none, which its line passes over.
  function joined(curves, transformed) {
    const tables = new Map();
    for (const curve of curves) {
      if (!tables.has(curve.x)) tables.set(curve.x, []);
      tables.get(curve.x).push(curve);
    }
    const table = uPlot.join([...tables].map(([x, each]) => [x, ...each.map((curve) => curve.y.map(transformed))]));
    const order = [...tables.values()].flat();
    return [table[0], ...curves.map((curve) => table[1 + order.indexOf(curve)])];
  }

  function nearest(x, place) {
    let low = 0, high = x.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (x[middle] > place) high = middle; else low = middle;
    }
    return Math.abs(x[low] - place) <= Math.abs(x[high] - place) ? low : high;
  }

  // -- one axis that panels share --------------------------------------------------------------------------
  class Group {
    constructor(axis) {
      this.panels = [];
      this.forward = axis.logarithmic ? Math.log10 : (value) => value;
      this.backward = axis.logarithmic ? (value) => 10 ** value : (value) => value;
    }

    add(panel) {
      this.panels.push(panel);
      const ends = panel.curves.flatMap((curve) => [curve.x[0], curve.x[curve.x.length - 1]]);
      const before = this.ends ?? [Infinity, -Infinity];
      this.ends = [Math.min(before[0], ...ends), Math.max(before[1], ...ends)];
      this.whole = this.ends.map(this.forward);
      const margin = this.whole[1] > this.whole[0] ? (panel.axis.margin ?? 0) * (this.whole[1] - this.whole[0]) : 0.5;
      this.whole = [this.whole[0] - margin, this.whole[1] + margin];
      this.range = this.whole;
    }

    get shown() { return this.range.map(this.backward); }

    show(low, high) {
      const whole = this.whole[1] - this.whole[0];
      const width = Math.min(Math.max(high - low, SMALLEST * whole), whole);
      const begin = Math.min(Math.max(0.5 * (low + high - width), this.whole[0]), this.whole[1] - width);
      this.range = [begin, begin + width];
      const [min, max] = this.shown;
      for (const panel of this.panels) panel.plot?.setScale("x", { min, max });
    }

    zoom(factor, share = 0.5) {
      const [low, high] = this.range, place = low + share * (high - low);
      this.show(place - (place - low) * factor, place + (high - place) * factor);
    }

    move(share) {
      const [low, high] = this.range, by = share * (high - low);
      const allowed = Math.min(Math.max(by, this.whole[0] - low), this.whole[1] - high);
      this.show(low + allowed, high + allowed);
    }

    // The pointer is at a place of the axis in one panel, or nowhere: all of them tell their values there.
    point(place) {
      if (place === this.place) return;
      this.place = place;
      for (const panel of this.panels) panel.tell(place);
    }

    do(what) {
      if (what === "in") this.zoom(0.5);
      if (what === "out") this.zoom(2);
      if (what === "left") this.move(-0.25);
      if (what === "right") this.move(0.25);
      if (what === "whole") this.show(...this.whole);
    }
  }

  // -- one panel -------------------------------------------------------------------------------------------
  const element = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  class Panel {
    constructor(data, axis, group, grids) {
      Object.assign(this, { axis, group, label: data.label, unit: data.unit, plain: written(data.unit) });
      let series = 0;
      this.curves = data.curves.map((curve) => {
        const grey = curve.kind === "reference" || curve.kind === "bound";
        const name = grey ? "--reference" : `--series-${1 + (series++ % COLOURS)}`;
        return { ...curve, x: grids[curve.grid], y: values(curve.values), colour: name, on: true };
      });
      this.logarithmic = data.logarithmic === true;
      const magnitudes = this.curves.flatMap((curve) => curve.y.reduce((most, each) => Math.max(most, Math.abs(each ?? 0)), 0));
      this.scaling = scaling(this.unit, Math.max(0, ...magnitudes));
      this.make(data.logarithmic !== null && data.logarithmic !== undefined);
    }

    make(switchable) {
      this.root = element("div", "plot-panel");
      const head = element("div", "plot-head");
      this.legend = element("ul", "plot-legend");
      this.legend.append(...this.curves.map((curve) => this.entry(curve)));
      head.append(element("span", "plot-name", titled(this.label, this.scaling.unit)), this.legend);
      if (switchable) head.append(this.logarithmSwitch());
      this.field = element("div", "plot-field");
      this.field.tabIndex = 0;
      this.field.setAttribute("role", "group");
      const said = [this.label || this.curves.map((curve) => curve.label).join(", "), this.scaling.unit].filter(Boolean);
      this.field.setAttribute("aria-label", `${said.join(" in ")} over ${titled(this.axis.label, written(this.axis.unit))}`);
      this.root.append(head, this.field);
    }

    logarithmSwitch() {
      const button = element("button", "plot-log", "log");
      button.title = "Magnitudes on a logarithmic scale";
      button.type = "button";
      button.dataset.do = "log";
      button.setAttribute("aria-pressed", String(this.logarithmic));
      button.addEventListener("click", () => {
        this.logarithmic = !this.logarithmic;
        button.setAttribute("aria-pressed", String(this.logarithmic));
        this.draw();
      });
      return button;
    }

    entry(curve) {
      const item = element("li"), button = element("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.title = "Show or hide";
      const form = { bound: " dashed", points: " round" }[curve.kind] ?? "";
      const swatch = element("span", `plot-swatch${form}`);
      swatch.style.color = `var(${curve.colour})`;
      curve.told = element("span", "plot-value");
      button.append(swatch, element("span", "", curve.label), " ", curve.told);
      button.addEventListener("click", () => {
        curve.on = !curve.on;
        button.setAttribute("aria-pressed", String(curve.on));
        this.plot?.setSeries(1 + this.curves.indexOf(curve), { show: curve.on });
      });
      item.append(button);
      return item;
    }

    transformed(value) {
      if (value === null || value === undefined) return value;
      const scaled = value / this.scaling.factor;
      if (!this.logarithmic) return scaled;
      return scaled === 0 ? null : Math.abs(scaled);
    }

    tell(place) {
      for (const curve of this.curves) {
        const value = place === null || curve.kind === "bound" ? undefined : this.valueAt(curve, place);
        curve.told.textContent = value === undefined ? "" : withUnit(number(value), this.scaling.unit);
      }
      if (this.plot && place !== null && !this.pointed) {
        this.plot.setCursor({ left: this.plot.valToPos(place, "x"), top: 0 }, false);
      } else if (this.plot && place === null) this.plot.setCursor({ left: -10, top: -10 }, false);
    }

    valueAt(curve, place) {
      const { x, y } = curve, index = nearest(x, place);
      const step = x.length > 1 ? Math.abs(x[Math.min(index + 1, x.length - 1)] - x[Math.max(index - 1, 0)]) : Infinity;
      if (Math.abs(x[index] - place) > step) return undefined;
      return y[index] === null ? undefined : y[index] / this.scaling.factor;
    }

    // -- drawing -------------------------------------------------------------------------------------------
    series(curve) {
      const grey = curve.kind === "reference", bound = curve.kind === "bound";
      const stroke = () => colour(curve.colour);
      const marks = { marked: { show: true, size: 8, fill: stroke }, points: { show: true, size: 7, fill: stroke }, bound: { show: false } };
      return {
        label: curve.label, show: curve.on, stroke, width: grey ? 3.5 : bound ? 1.3 : 1.5, dash: bound ? [6, 4] : undefined,
        points: marks[curve.kind] ?? { size: 4, fill: stroke }, paths: curve.kind === "points" ? () => null : undefined,
      };
    }

    axes() {
      const style = { stroke: () => colour("--soft"), grid: { stroke: () => colour("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
      style.ticks = { ...style.grid, size: 5 };
      const labels = (_, splits) => splits.map((each) => (each === null ? "" : number(each)));
      const horizontal = { ...style, size: 34, space: 70, values: labels };
      if (this.last) Object.assign(horizontal, { label: titled(this.axis.label, written(this.axis.unit)), labelSize: 18, labelFont: style.font });
      if (this.axis.ticks.length) {
        horizontal.splits = () => this.axis.ticks.filter((each) => each >= this.group.shown[0] && each <= this.group.shown[1]);
        horizontal.filter = (_, splits) => splits;
      }
      const size = (_, texts) => 14 + 7 * Math.max(6, ...(texts ?? []).map((each) => (each ?? "").length));
      return [horizontal, { ...style, size, values: labels }];
    }

    heightScale() {
      if (!this.logarithmic) return {};
      const range = (_, low, high) => {
        if (low === null || !(high > 0)) return [1e-12, 1];
        const least = Math.max(low, high * 10 ** -DECADES);
        return uPlot.rangeLog(least, least === high ? 10 * high : high, 10, false);
      };
      return { distr: 3, range };
    }

    draw() {
      this.plot?.destroy();
      const scales = { x: { time: false, distr: this.axis.logarithmic ? 3 : 1, range: () => this.group.shown }, y: this.heightScale() };
      const whole = () => { this.group.show(...this.group.whole); return null; };
      const options = {
        width: this.field.clientWidth, height: HEIGHT, padding: [8, 12, 0, 0], scales, axes: this.axes(), legend: { show: false },
        series: [{}, ...this.curves.map((curve) => this.series(curve))],
        cursor: { y: false, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => whole, mousedown: (plot, _, handler) => (event) => this.grab(event, handler) } },
        hooks: { setCursor: [(plot) => this.pointedAt(plot)], setSelect: [(plot) => this.selected(plot)] },
      };
      this.plot = new uPlot(options, joined(this.curves, (value) => this.transformed(value)), this.field);
      if (!this.watched) this.watch();
    }

    // The pointer is over this panel: what follows in the others comes from the group.
    pointedAt(plot) {
      if (!this.field.matches(":hover") && document.activeElement !== this.field && !this.touched) return;
      this.pointed = true;
      const left = plot.cursor.left;
      this.group.point(left === null || left === undefined || left < 0 ? null : plot.posToVal(left, "x"));
      this.pointed = false;
    }

    selected(plot) {
      const { left, width } = plot.select;
      if (width < 3) return;
      const [low, high] = [left, left + width].map((each) => this.group.forward(plot.posToVal(each, "x")));
      plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      this.group.show(low, high);
    }

    grab(event, handler) {
      if (!event.shiftKey) return handler(event);
      let last = event.clientX;
      const move = (moved) => { this.group.move((last - moved.clientX) / this.plot.over.clientWidth); last = moved.clientX; };
      const end = () => { removeEventListener("mousemove", move); removeEventListener("mouseup", end); };
      addEventListener("mousemove", move);
      addEventListener("mouseup", end);
      return null;
    }

    watch() {
      this.watched = true;
      new ResizeObserver(() => this.plot.setSize({ width: this.field.clientWidth, height: HEIGHT })).observe(this.field);
      this.field.addEventListener("keydown", (event) => this.key(event));
      this.field.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      this.field.addEventListener("mouseleave", () => this.group.point(null));
      this.watchFingers();
    }

    wheel(event) {
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (event.ctrlKey) {
        const { left, width } = this.plot.over.getBoundingClientRect();
        this.group.zoom(Math.exp(event.deltaY / 300), (event.clientX - left) / width);
      } else if (Math.abs(sideways) > (event.shiftKey ? 0 : Math.abs(event.deltaY))) this.group.move(sideways / this.plot.over.clientWidth);
      else return;
      event.preventDefault();
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const sign = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const whats = { "+": "in", "=": "in", "-": "out", "−": "out", 0: "whole" };
      if (sign && event.shiftKey) this.group.do(sign < 0 ? "left" : "right");
      else if (sign) this.step(sign);
      else if (event.key === "Escape") this.group.point(null);
      else if (whats[event.key]) this.group.do(whats[event.key]);
      else return;
      event.preventDefault();
    }

    step(sign) {
      const width = this.plot.over.clientWidth;
      const before = this.group.place === undefined || this.group.place === null ? 0.5 * width : this.plot.valToPos(this.group.place, "x");
      const left = Math.min(Math.max(before + sign * Math.max(1, width / 200), 0), width);
      this.plot.setCursor({ left, top: 0 }, false);
      this.group.point(this.plot.posToVal(left, "x"));
    }

    // Two fingers zoom, one moves what is zoomed, or reads values where the whole is shown.
    watchFingers() {
      const fingers = new Map(), over = () => this.plot.over.getBoundingClientRect();
      const spread = () => { const [a, b] = [...fingers.values()]; return Math.max(Math.abs(a - b), 10); };
      const touching = (event) => event.pointerType === "touch";
      this.field.addEventListener("pointerdown", (event) => { if (touching(event)) { fingers.set(event.pointerId, event.clientX); this.read(event); } });
      this.field.addEventListener("pointermove", (event) => {
        if (!fingers.has(event.pointerId)) return;
        const last = fingers.get(event.pointerId), before = fingers.size === 2 ? spread() : 0;
        fingers.set(event.pointerId, event.clientX);
        if (fingers.size === 2) this.group.zoom(before / spread(), ([...fingers.values()].reduce((a, b) => a + b) / 2 - over().left) / over().width);
        else if (this.group.range[1] - this.group.range[0] < 0.999 * (this.group.whole[1] - this.group.whole[0])) this.group.move((last - event.clientX) / over().width);
        else this.read(event);
      });
      for (const ending of ["pointerup", "pointercancel"]) this.field.addEventListener(ending, (event) => fingers.delete(event.pointerId));
    }

    read(event) {
      const { left, width } = this.plot.over.getBoundingClientRect();
      const place = this.plot.posToVal(Math.min(Math.max(event.clientX - left, 0), width), "x");
      this.group.point(place);
    }
  }

  // -- a plot of several panels ----------------------------------------------------------------------------
  const groups = new Map(), panels = [];

  function csv(data, own) {
    const [low, high] = own[0].group.shown;
    const curves = own.flatMap((panel) => panel.curves.map((curve) => ({ ...curve, unit: panel.unit, panel: panel.label })));
    const table = joined(curves, (value) => value);
    const cell = (text) => `"${text.replace(/"/g, '""')}"`;
    const named = (curve) => [curve.panel, curve.label].filter(Boolean).join(": ");
    const header = [`${data.axis.label} [${data.axis.unit}]`, ...curves.map((curve) => `${named(curve)} [${curve.unit}]`)];
    const rows = table[0].map((place, row) => [place, ...curves.map((_, index) => table[1 + index][row] ?? "")]);
    return [header.map(cell), ...rows.filter(([place]) => place >= low && place <= high)].map((row) => row.join(",")).join("\r\n");
  }

  function start(section) {
    const data = JSON.parse(section.querySelector("script.data").textContent);
    const grids = data.grids.map(places);
    const group = (data.group && groups.get(data.group)) || new Group(data.axis);
    if (data.group) groups.set(data.group, group);
    const own = data.panels.map((panel) => new Panel(panel, data.axis, group, grids));
    own[own.length - 1].last = true;
    own.forEach((panel) => group.add(panel));
    panels.push(...own);
    section.querySelector(".plot-panels").append(...own.map((panel) => panel.root));
    section.querySelector(".plot-tools").addEventListener("click", (event) => {
      const what = event.target.closest("button")?.dataset.do;
      if (what === "csv") save(csv(data, own), `${data.title}.csv`, "text/csv");
      else if (what) group.do(what);
    });
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const panel = own.find((each) => each.field === entry.target);
        if (entry.isIntersecting && !panel.plot) panel.draw();
      }
    }, { rootMargin: NEAR });
    own.forEach((panel) => seen.observe(panel.field));
  }

  document.querySelectorAll("section.plot").forEach(start);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => panels.forEach((panel) => panel.plot?.redraw(false, true)));
  window.mbsfmuPlots = { panels };
})();
