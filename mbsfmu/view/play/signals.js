// Signals as the machine runs: plots that scroll, one panel for each unit, over the last seconds, and what coupling costs.

"use strict";

(() => {
  const Panel = window.mbsfmuPlotPanel;
  const { number, scaling, withUnit } = window.mbsfmuQuantities;
  const { make } = window.mbsfmuPlayInputs;

  const WINDOWS = [2, 5, 10, 30, 60]; // s
  const USUAL = 10;
  const KEPT = 120; // s

  /** The axis that the panels share: its end is the present. */
  class Scrolling {
    constructor() {
      this.panels = [];
      this.length = USUAL;
      this.end = 0;
      this.forward = this.backward = (value) => value;
    }

    get shown() {
      const end = Math.max(this.end, this.length);
      return [end - this.length, end];
    }

    get range() {
      return this.shown;
    }

    get whole() {
      return this.shown;
    }

    show() {}
    move() {}
    zoom() {}
    do() {}

    point(place) {
      for (const panel of this.panels) panel.tell(place);
    }
  }

  /** Return what a signal of the coupled run is called. */
  const other = (name) => `${name}, coupled`;

  class Signals {
    /** coupling: hears differences from the coupled run, whose values stand behind those of the monolithic one. */
    constructor(section, data, chosen, coupling) {
      this.coupling = coupling;
      this.both = new Set((data.coupled?.signals ?? []).map(([reference]) => reference));
      this.times = []; // of all histories
      this.data = new Map(data.signals.map((each) => [each.name, each]));
      this.place = section.querySelector(".plot-panels");
      this.names = data.plotted;
      this.chosen = chosen;
      this.group = new Scrolling();
      this.histories = new Map();
      const search = section.querySelector(".signal");
      const options = data.signals.map((each) => Object.assign(document.createElement("option"), { value: each.name }));
      section.querySelector("datalist").append(...options);
      search.addEventListener("input", () => {
        if (!this.data.has(search.value)) return;
        this.choose([...new Set([...this.names, search.value])]);
        search.value = "";
      });
      const length = section.querySelector(".window");
      for (const each of WINDOWS) length.append(new Option(`${each} s`, each));
      length.value = USUAL;
      length.addEventListener("change", () => {
        this.group.length = Number(length.value);
        this.draw();
      });
      this.choose(this.names);
      addEventListener("beforeprint", () => this.group.panels.forEach((panel) => panel.print()));
      addEventListener("afterprint", () => this.draw());
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }

    /** Plot signals by their names. */
    choose(names) {
      this.names = names;
      const kept = this.histories;
      const absent = () => ({ x: this.times, y: Array(this.times.length).fill(null) });
      this.pairs = names.filter((name) => this.both.has(this.data.get(name).reference)).map((name) => [name, other(name)]);
      this.columns = [...names, ...this.pairs.map(([, coupled]) => coupled)];
      this.histories = new Map(this.columns.map((name) => [name, kept.get(name) ?? absent()]));
      for (const panel of this.group.panels) panel.plot?.destroy();
      const units = [...new Set(names.map((name) => this.data.get(name).unit))];
      this.group.panels = units.map((unit) => this.panel(unit));
      this.group.panels.forEach((panel, index) => (panel.last = index === units.length - 1));
      this.place.replaceChildren(...this.group.panels.map((panel) => panel.root));
      for (const panel of this.group.panels) panel.draw();
      this.chosen(names.map((name) => this.data.get(name).reference));
    }

    panel(unit) {
      const own = this.names.filter((name) => this.data.get(name).unit === unit);
      const curveOf = (label, kind) => ({ label, values: "", grid: 0, kind });
      const curves = own.flatMap((name) =>
        this.histories.has(other(name))
          ? [curveOf(name, "line"), { ...curveOf(other(name), "coupled"), called: "coupled" }]
          : [curveOf(name, "line")],
      );
      const magnitude = Math.max(...own.map((name) => this.data.get(name).most));
      const axis = { label: "t", unit: "s", ticks: [], logarithmic: false };
      const panel = new Panel({ label: "", unit, curves, magnitude }, axis, this.group, [[]]);
      panel.curves.forEach((curve) => Object.assign(curve, this.histories.get(curve.label)));
      panel.removable((label) => this.choose(this.names.filter((name) => name !== label)));
      return panel;
    }

    /** Take rows of a time and the values of the chosen signals, in their order. */
    add(rows) {
      const { times } = this;
      for (const [time, ...values] of rows) {
        if (values.length !== this.columns.length || times[times.length - 1] > time) continue;
        if (times[times.length - 1] === time) this.forEach((each) => each.pop()); // the start, initialized anew
        times.push(time);
        this.columns.forEach((name, index) => this.histories.get(name).y.push(values[index]));
        for (const [name, coupled] of this.pairs) this.coupling.add(name, this.last(name), this.last(coupled));
      }
      const old = times.findIndex((each) => each >= this.group.end - KEPT);
      if (old > 1000) this.forEach((each) => each.splice(0, old));
    }

    last(name) {
      const { y } = this.histories.get(name);
      return y[y.length - 1] ?? null;
    }

    /** Return the present values of the plotted signals that both runs have. */
    apart() {
      return this.pairs.map(([name, coupled]) => {
        const { unit, most: magnitude } = this.data.get(name);
        return { name, unit, magnitude, one: this.last(name), other: this.last(coupled) };
      });
    }

    /** Do something with the times, and with the values of each history. */
    forEach(action) {
      action(this.times);
      for (const { y } of this.histories.values()) action(y);
    }

    /** Forget what is behind a time: the run went back there. */
    cut(time) {
      const later = this.times.findIndex((each) => each > time);
      if (later >= 0) this.forEach((each) => each.splice(later));
      this.scroll(time);
    }

    scroll(time) {
      this.group.end = time;
      for (const panel of this.group.panels) panel.refresh();
    }

    draw() {
      for (const panel of this.group.panels) panel.draw();
    }
  }

  window.mbsfmuPlaySignals = Signals;

  const TOLD = 200; // ms between two readings of the table

  /** What coupling costs, as it runs: algorithm and communication step, and how far signals are from the monolithic ones. */
  class Coupling {
    /** chosen: called with the index of an algorithm and a step in s. */
    constructor(place, data, chosen) {
      Object.assign(this, { place, data, most: new Map(), toldAt: 0 });
      const changed = () => chosen(Number(this.algorithm.value), Number(this.step.value));
      const select = (name, options) => {
        const made = place.querySelector(name);
        made.append(...options.map(([value, text]) => new Option(text, value)));
        made.addEventListener("change", changed);
        return made;
      };
      this.algorithm = select(".algorithm", data.algorithms.map((each, index) => [index, each.called]));
      this.step = select(".communication", data.steps.map((each) => [each, `${number(1000 * each)} ms`]));
      this.show(data.begin.algorithm, data.begin.step);
      this.rows = place.querySelector("tbody");
      this.sentence = place.querySelector(".lost");
    }

    get label() {
      return this.data.algorithms[Number(this.algorithm.value)].called;
    }

    show(algorithm, step) {
      this.algorithm.value = algorithm;
      this.step.value = step;
    }

    forget() {
      this.most.clear();
    }

    /** Take differences of signals: pairs of values by name, at one time. */
    add(name, one, other) {
      if (one === null || other === null) return;
      this.most.set(name, Math.max(this.most.get(name) ?? 0, Math.abs(other - one)));
    }

    /** Tell of signals how far apart they are; and why the coupled run has ended where it has. */
    tell(now, signals, lost) {
      if (now - this.toldAt < TOLD) return;
      this.toldAt = now;
      this.sentence.hidden = !lost;
      if (lost) this.sentence.textContent = `The coupled run has ended: ${lost}. It begins anew with a reset.`;
      this.rows.replaceChildren(...signals.map((each) => this.row(each)));
    }

    row({ name, unit, magnitude, one, other }) {
      const most = this.most.get(name);
      const { factor, unit: written } = scaling(unit, magnitude); // as the plots have it
      const told = (value) => (value === null || value === undefined ? "–" : withUnit(number(value / factor, 3), written));
      const now = one === null || other === null ? null : other - one;
      const cells = [told(now), told(most)].map((textContent) => make("td", { textContent }));
      return make("tr", {}, make("th", { scope: "row", textContent: name }), ...cells);
    }
  }

  window.mbsfmuPlayCoupling = Coupling;
})();
