// Plots that scroll: one panel for each unit of the chosen signals, over the last seconds of the run.

"use strict";

(() => {
  const Panel = window.mbsfmuPlotPanel;

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

  class Signals {
    constructor(section, data, chosen) {
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
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }

    /** Plot signals by their names. */
    choose(names) {
      this.names = names;
      const kept = this.histories;
      this.histories = new Map(names.map((name) => [name, kept.get(name) ?? { x: [], y: [] }]));
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
      const curves = own.map((name) => ({ label: name, values: "", grid: 0, kind: "line" }));
      const magnitude = Math.max(...own.map((name) => this.data.get(name).most));
      const axis = { label: "t", unit: "s", ticks: [], logarithmic: false };
      const panel = new Panel({ label: "", unit, curves, magnitude }, axis, this.group, [[]]);
      panel.curves.forEach((curve) => Object.assign(curve, this.histories.get(curve.label)));
      panel.removable((label) => this.choose(this.names.filter((name) => name !== label)));
      return panel;
    }

    /** Take rows of a time and the values of the chosen signals, in their order. */
    add(rows) {
      for (const [time, ...values] of rows) {
        if (values.length !== this.names.length) continue;
        this.names.forEach((name, index) => {
          const { x, y } = this.histories.get(name);
          if (x.length && x[x.length - 1] >= time) return;
          x.push(time);
          y.push(values[index]);
        });
      }
      for (const { x, y } of this.histories.values()) {
        const old = x.findIndex((each) => each >= this.group.end - KEPT);
        if (old > 1000) [x, y].forEach((each) => each.splice(0, old));
      }
    }

    /** Forget what is behind a time: the run went back there. */
    cut(time) {
      for (const { x, y } of this.histories.values()) {
        const later = x.findIndex((each) => each > time);
        if (later >= 0) [x, y].forEach((each) => each.splice(later));
      }
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
})();
