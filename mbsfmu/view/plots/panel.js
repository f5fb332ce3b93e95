// Panels of plots over one axis: what of it is shown and where on it the pointer is; the legend, the curves and what hands do.
(() => {
  "use strict";
  const { written, scaling, number, withUnit, titled } = window.mbsfmuQuantities;
  const { values, joined, nearest } = window.mbsfmuPlotData;
  const SMALLEST = 1e-7,
    MARGIN = 0.04;

  /** The axis that panels share. */
  class Group {
    constructor(axis) {
      this.panels = [];
      this.unit = axis.unit;
      this.pointed = []; // who hears where the pointer is
      this.following = []; // who hears that place, and that of what else of the page is at one
      this.forward = axis.logarithmic ? Math.log10 : (value) => value;
      this.backward = axis.logarithmic ? (value) => 10 ** value : (value) => value;
    }

    add(panel) {
      this.panels.push(panel);
      const ends = panel.curves.flatMap((curve) => [curve.x[0], curve.x[curve.x.length - 1]]);
      const before = this.ends ?? [Infinity, -Infinity];
      this.ends = [Math.min(before[0], ...ends), Math.max(before[1], ...ends)];
      this.whole = this.ends.map(this.forward);
      const share = panel.curves.some((curve) => ["marked", "points"].includes(curve.kind)) ? MARGIN : 0;
      const margin = this.whole[1] > this.whole[0] ? share * (this.whole[1] - this.whole[0]) : 0.5;
      this.whole = [this.whole[0] - margin, this.whole[1] + margin];
      this.range = this.zoomed ? this.range : this.whole;
    }

    remove(panel) {
      panel.plot?.destroy();
      this.panels = this.panels.filter((each) => each !== panel);
    }

    get shown() {
      return this.range.map(this.backward);
    }

    show(low, high) {
      const whole = this.whole[1] - this.whole[0];
      const width = Math.min(Math.max(high - low, SMALLEST * whole), whole);
      const begin = Math.min(Math.max(0.5 * (low + high - width), this.whole[0]), this.whole[1] - width);
      this.range = [begin, begin + width];
      this.zoomed = width < whole;
      const [min, max] = this.shown;
      for (const panel of this.panels) panel.plot?.setScale("x", { min, max });
      queueMicrotask(() => this.pointAgain()); // when the new scale holds
    }

    // What is shown has moved: the pointer is at another place of it, the keyboard's place is elsewhere in the field.
    pointAgain() {
      if (this.place === undefined || this.place === null) return;
      const place = this.panels.find((panel) => panel.hovered)?.placeOfCursor ?? this.place;
      this.place = undefined;
      this.point(place);
    }

    zoom(factor, share = 0.5) {
      const [low, high] = this.range,
        place = low + share * (high - low);
      this.show(place - (place - low) * factor, place + (high - place) * factor);
    }

    move(share) {
      const [low, high] = this.range,
        by = share * (high - low);
      const allowed = Math.min(Math.max(by, this.whole[0] - low), this.whole[1] - high);
      this.show(low + allowed, high + allowed);
    }

    // The pointer is at a place of the axis in one panel, or nowhere: all of them tell their values there.
    point(place) {
      if (place === this.place) return;
      this.follow(place);
      for (const hear of this.pointed) hear(place);
    }

    // Something else of the page is at a place.
    follow(place) {
      this.place = place;
      for (const panel of this.panels) panel.tell(place);
      for (const hear of this.following) hear(place);
    }

    do(what) {
      if (what === "in") this.zoom(0.5);
      if (what === "out") this.zoom(2);
      if (what === "left") this.move(-0.25);
      if (what === "right") this.move(0.25);
      if (what === "whole") this.show(...this.whole);
    }
  }

  window.mbsfmuPlotGroup = Group;

  const HEIGHT = 220,
    PAPER = 660, // pixels: what paper has in width
    DECADES = 8,
    COLOURS = 8;

  const element = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  class Panel {
    constructor(data, axis, group, grids) {
      Object.assign(this, {
        axis,
        group,
        label: data.label,
        unit: data.unit,
        limits: data.limits,
        plain: written(data.unit),
      });
      let series = 0;
      this.curves = data.curves.map((curve) => {
        const grey = curve.kind === "reference" || curve.kind === "bound";
        if (!grey && curve.kind !== "coupled") series += 1; // one has the colour of the curve before it
        const name = grey ? "--reference" : `--series-${1 + ((series - 1) % COLOURS)}`;
        return { ...curve, x: grids[curve.grid], y: values(curve.values), colour: name, on: true };
      });
      this.logarithmic = data.logarithmic === true;
      this.expected = data.magnitude ?? 0;
      this.scale();
      document.addEventListener("units", () => this.rescale());
      this.make(data.logarithmic !== null && data.logarithmic !== undefined);
    }

    /** Choose the unit by the magnitude of the curves. */
    scale() {
      const magnitudes = this.curves.flatMap((curve) =>
        curve.y.reduce((most, each) => Math.max(most, Math.abs(each ?? 0)), 0),
      );
      const most = this.limits ? Math.max(...this.limits.map(Math.abs)) : Infinity;
      this.scaling = scaling(this.unit, Math.min(most, Math.max(this.expected, ...magnitudes)));
    }

    /** The same with other units, or other curves. */
    rescale() {
      this.scale();
      this.name.textContent = titled(this.label, this.scaling.unit);
      this.describe();
      this.tellValues(this.group.place ?? null);
      this.plot?.setData(joined(this.curves, (value) => this.transformed(value)));
    }

    describe() {
      const said = [this.label || this.curves.map((curve) => curve.label).join(", "), this.scaling.unit].filter(
        Boolean,
      );
      this.field.setAttribute(
        "aria-label",
        `${said.join(" in ")} over ${titled(this.axis.label, written(this.axis.unit))}`,
      );
    }

    /** Give each curve a button that takes it out; `remove` hears its label. */
    removable(remove) {
      this.curves.forEach((curve, index) => {
        if (curve.kind === "coupled") return; // it goes with the curve before it
        const button = element("button", "remove", "×");
        button.type = "button";
        button.setAttribute("aria-label", `remove ${curve.label}`);
        button.addEventListener("click", () => remove(curve.label));
        this.legend.children[index].append(button);
      });
    }

    make(switchable) {
      this.root = element("div", "plot-panel");
      const head = element("div", "plot-head");
      this.legend = element("ul", "plot-legend");
      this.legend.append(...this.curves.map((curve) => this.entry(curve)));
      this.name = element("span", "plot-name", titled(this.label, this.scaling.unit));
      head.append(this.name, this.legend);
      if (switchable) head.append(this.logarithmSwitch());
      this.field = element("div", "plot-field");
      this.field.tabIndex = 0;
      this.field.setAttribute("role", "group");
      this.describe();
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
      const item = element("li"),
        button = element("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.title = "Show or hide";
      const form = { bound: " dashed", coupled: " dashed", points: " round" }[curve.kind] ?? "";
      const swatch = element("span", `plot-swatch${form}`);
      swatch.style.color = `var(${curve.colour})`;
      curve.told = element("span", "plot-value");
      button.append(swatch, element("span", "", curve.called ?? curve.label), " ", curve.told);
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

    tellValues(place) {
      for (const curve of this.curves) {
        const value = place === null || curve.kind === "bound" ? undefined : this.valueAt(curve, place);
        curve.told.textContent = value === undefined ? "" : withUnit(number(value), this.scaling.unit);
      }
    }

    tell(place) {
      this.tellValues(place);
      if (this.plot && place !== null && !this.pointed) {
        this.plot.setCursor({ left: this.plot.valToPos(place, "x"), top: 0 }, false);
      } else if (this.plot && place === null) this.plot.setCursor({ left: -10, top: -10 }, false);
    }

    valueAt(curve, place) {
      const { x, y } = curve,
        index = nearest(x, place);
      const step = x.length > 1 ? Math.abs(x[Math.min(index + 1, x.length - 1)] - x[Math.max(index - 1, 0)]) : Infinity;
      if (Math.abs(x[index] - place) > step) return undefined;
      return y[index] === null ? undefined : y[index] / this.scaling.factor;
    }

    // -- drawing -------------------------------------------------------------------------------------------
    series(curve) {
      const grey = curve.kind === "reference",
        bound = curve.kind === "bound";
      const stroke = () => colour(curve.colour);
      const marks = {
        marked: { show: true, size: 8, fill: stroke },
        points: { show: true, size: 7, fill: stroke },
        bound: { show: false },
      };
      return {
        label: curve.label,
        show: curve.on,
        stroke,
        width: grey ? 3.5 : bound ? 1.3 : 1.5,
        dash: bound || curve.kind === "coupled" ? [6, 4] : undefined,
        points: marks[curve.kind] ?? { size: 4, fill: stroke },
        paths: curve.kind === "points" ? () => null : undefined,
      };
    }

    axes() {
      const style = {
        stroke: () => colour("--soft"),
        grid: { stroke: () => colour("--line"), width: 1 },
        font: "12px system-ui, sans-serif",
      };
      style.ticks = { ...style.grid, size: 5 };
      const labels = (_, splits) => splits.map((each) => (each === null ? "" : number(each)));
      const horizontal = { ...style, size: 34, space: 70, values: labels };
      if (this.last)
        Object.assign(horizontal, {
          label: titled(this.axis.label, written(this.axis.unit)),
          labelSize: 18,
          labelFont: style.font,
        });
      if (this.axis.ticks.length) {
        horizontal.splits = () =>
          this.axis.ticks.filter((each) => each >= this.group.shown[0] && each <= this.group.shown[1]);
        horizontal.filter = (_, splits) => splits;
      }
      const size = (_, texts) => 14 + 7 * Math.max(7, ...(texts ?? []).map((each) => (each ?? "").length));
      return [horizontal, { ...style, size, values: labels }];
    }

    // Curves that run away leave the panel: what is within the limits fills it.
    limited(low, high) {
      const [least, most] = this.limits.map((each) => each / this.scaling.factor);
      if (low === null || low > most || high < least) return [least, most];
      return uPlot.rangeNum(Math.max(low, least), Math.min(high, most), 0.1, true);
    }

    heightScale() {
      if (!this.logarithmic && this.limits) return { range: (_, low, high) => this.limited(low, high) };
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
      this.printed = false;
      const scales = {
        x: { time: false, distr: this.axis.logarithmic ? 3 : 1, range: () => this.group.shown },
        y: this.heightScale(),
      };
      const whole = () => {
        this.group.show(...this.group.whole);
        return null;
      };
      const options = {
        width: this.field.clientWidth,
        height: HEIGHT,
        padding: [8, 12, 0, 0],
        scales,
        axes: this.axes(),
        legend: { show: false },
        series: [{}, ...this.curves.map((curve) => this.series(curve))],
        cursor: {
          y: false,
          drag: { x: true, y: false, setScale: false },
          bind: { dblclick: () => whole, mousedown: (plot, _, handler) => (event) => this.grab(event, handler) },
        },
        hooks: { setCursor: [(plot) => this.pointedAt(plot)], setSelect: [(plot) => this.selected(plot)] },
      };
      this.plot = new uPlot(
        options,
        joined(this.curves, (value) => this.transformed(value)),
        this.field,
      );
      if (!this.watched) this.watch();
    }

    /** Draw it anew as wide as paper, in the inks of a light screen. */
    print() {
      this.draw();
      this.printed = true;
      this.plot.setSize({ width: PAPER, height: HEIGHT });
      this.plot.redraw(false, true);
    }

    // Curves have grown, and the group shows another part of them.
    refresh() {
      if (!this.plot) return;
      this.plot.setData(
        joined(this.curves, (value) => this.transformed(value)),
        false,
      );
      const [min, max] = this.group.shown;
      this.plot.setScale("x", { min, max });
      const [place] = this.curves.map((curve) => curve.x[curve.x.length - 1]);
      if (!this.field.matches(":hover") && place !== undefined) this.tellValues(place);
    }

    get hovered() {
      return Boolean(this.plot) && this.field.matches(":hover") && this.plot.cursor.left >= 0;
    }

    get placeOfCursor() {
      return this.plot.posToVal(this.plot.cursor.left, "x");
    }

    // The pointer is over this panel: what follows in the others comes from the group.
    pointedAt(plot) {
      if (!this.field.matches(":hover")) return;
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
      const move = (moved) => {
        this.group.move((last - moved.clientX) / this.plot.over.clientWidth);
        last = moved.clientX;
      };
      const end = () => {
        removeEventListener("mousemove", move);
        removeEventListener("mouseup", end);
      };
      addEventListener("mousemove", move);
      addEventListener("mouseup", end);
      return null;
    }

    watch() {
      this.watched = true;
      const fit = () => this.printed || this.plot.setSize({ width: this.field.clientWidth, height: HEIGHT });
      new ResizeObserver(fit).observe(this.field);
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
      } else if (Math.abs(sideways) > (event.shiftKey ? 0 : Math.abs(event.deltaY)))
        this.group.move(sideways / this.plot.over.clientWidth);
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
      const before =
        this.group.place === undefined || this.group.place === null
          ? 0.5 * width
          : this.plot.valToPos(this.group.place, "x");
      const left = Math.min(Math.max(before + sign * Math.max(1, width / 200), 0), width);
      this.plot.setCursor({ left, top: 0 }, false);
      this.group.point(this.plot.posToVal(left, "x"));
    }

    // Two fingers zoom, one moves what is zoomed, or reads values where the whole is shown.
    watchFingers() {
      const fingers = new Map(),
        over = () => this.plot.over.getBoundingClientRect();
      const spread = () => {
        const [a, b] = [...fingers.values()];
        return Math.max(Math.abs(a - b), 10);
      };
      const touching = (event) => event.pointerType === "touch";
      this.field.addEventListener("pointerdown", (event) => {
        if (touching(event)) {
          fingers.set(event.pointerId, event.clientX);
          this.read(event);
        }
      });
      this.field.addEventListener("pointermove", (event) => {
        if (!fingers.has(event.pointerId)) return;
        const last = fingers.get(event.pointerId),
          before = fingers.size === 2 ? spread() : 0;
        fingers.set(event.pointerId, event.clientX);
        if (fingers.size === 2)
          this.group.zoom(
            before / spread(),
            ([...fingers.values()].reduce((a, b) => a + b) / 2 - over().left) / over().width,
          );
        else if (this.group.range[1] - this.group.range[0] < 0.999 * (this.group.whole[1] - this.group.whole[0]))
          this.group.move((last - event.clientX) / over().width);
        else this.read(event);
      });
      for (const ending of ["pointerup", "pointercancel"])
        this.field.addEventListener(ending, (event) => fingers.delete(event.pointerId));
    }

    read(event) {
      const { left, width } = this.plot.over.getBoundingClientRect();
      const place = this.plot.posToVal(Math.min(Math.max(event.clientX - left, 0), width), "x");
      this.group.point(place);
    }
  }

  window.mbsfmuPlotPanel = Panel;
})();
