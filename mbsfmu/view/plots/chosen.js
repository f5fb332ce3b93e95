// Signals that are chosen from all plots of a group, one panel for each unit, and the search for them.
(() => {
  "use strict";
  const Panel = window.mbsfmuPlotPanel;

  class Chosen {
    constructor(section) {
      const data = JSON.parse(section.querySelector("script.data").textContent);
      this.place = section.querySelector(".plot-panels");
      this.group = window.mbsfmuPlots.groups.get(data.group);
      if (!this.group) return;
      this.panels = [];
      this.known = new Map();
      for (const panel of this.group.panels)
        for (const curve of panel.curves) this.known.set(curve.label, { curve, panel });
      this.names = data.names.filter((name) => this.known.has(name));
      this.parts = [...section.parentElement.querySelectorAll("details")].map((part) => ({ part, words: wordsOf(part) }));
      this.found = section.querySelector(".found");
      const list = section.querySelector("datalist");
      list.append(...[...this.known.keys()].map((name) => new Option(name, name)));
      const find = section.querySelector(".find");
      find.addEventListener("input", () => {
        if (this.known.has(find.value)) {
          this.choose([...new Set([...this.names, find.value])]);
          find.value = "";
        }
        this.filter(find.value.trim().toLowerCase());
      });
      this.choose(this.names);
    }

    /** Leave the parts that have signals with a text in their names. */
    filter(text) {
      let count = 0;
      for (const { part, words } of this.parts) {
        part.hidden = !words.includes(text);
        count += part.hidden ? 0 : 1;
      }
      this.found.textContent = text ? `${count} of ${this.parts.length} parts` : "";
    }

    /** Plot signals by their names. */
    choose(names) {
      this.names = names;
      for (const panel of this.panels) this.group.remove(panel);
      const units = [...new Set(names.map((name) => this.known.get(name).panel.unit))];
      this.panels = units.map((unit) => this.panel(unit));
      this.panels.forEach((panel) => (panel.last = true));
      this.place.replaceChildren(...this.panels.map((panel) => panel.root));
      for (const panel of this.panels) {
        this.group.add(panel);
        panel.draw();
      }
    }

    panel(unit) {
      const own = this.names.map((name) => this.known.get(name)).filter(({ panel }) => panel.unit === unit);
      const curves = own.map(({ curve }) => ({ label: curve.label, values: "", grid: 0, kind: "line" }));
      const panel = new Panel({ label: "", unit, curves, logarithmic: false }, own[0].panel.axis, this.group, [[]]);
      panel.curves.forEach((curve, index) => Object.assign(curve, { x: own[index].curve.x, y: own[index].curve.y }));
      panel.rescale();
      panel.removable((label) => this.choose(this.names.filter((name) => name !== label)));
      return panel;
    }
  }

  /** Names that a part of the page speaks of: of its curves, and of constants. */
  function wordsOf(part) {
    const legends = [...part.querySelectorAll(".plot-legend button, p.soft, summary")];
    return legends.map((each) => each.textContent.toLowerCase()).join("\n");
  }

  for (const section of document.querySelectorAll(".plot-chosen")) section.chosen = new Chosen(section);
})();
