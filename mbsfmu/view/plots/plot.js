// Plots over one axis: zoomed and moved together, with the values of all curves where the pointer or the keyboard is; and
// signals that are chosen from all plots of a group, one panel for each unit, with the search for them.
(() => {
  "use strict";
  const { save } = window.mbsfmuDownload;
  const { places, csv } = window.mbsfmuPlotData;
  const Group = window.mbsfmuPlotGroup,
    Panel = window.mbsfmuPlotPanel;
  const NEAR = "300px"; // panels are drawn when they come so near to what is seen

  const groups = new Map(),
    panels = [];

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
      else if (what && what !== "units") group.do(what);
    });
    const seen = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          const panel = own.find((each) => each.field === entry.target);
          if (entry.isIntersecting && !panel.plot) panel.draw();
        }
      },
      { rootMargin: NEAR },
    );
    own.forEach((panel) => seen.observe(panel.field));
  }

  document.querySelectorAll("section.plot").forEach(start);
  // One place in time for plots and motion: where the pointer is in one, the other is.
  for (const scene of document.querySelectorAll(".mbsfmu-scene:not([data-live])")) {
    const shared = [...groups.values()].filter((group) => group.unit === "s");
    for (const group of shared)
      group.pointed.push((place) => {
        if (place !== null && scene.scene && !scene.scene.playing) scene.scene.seek(place);
      });
    scene.addEventListener("timechange", ({ detail: { time } }) => {
      for (const group of shared) if (!group.panels.some((panel) => panel.hovered)) group.follow(time);
    });
  }

  // Paper shows all panels that are not folded away.
  let printing = [];
  addEventListener("beforeprint", () => {
    printing = panels.concat(...[...document.querySelectorAll(".plot-chosen")].map((each) => each.chosen.panels ?? []));
    printing = [...new Set(printing)].filter((panel) => !panel.root.closest("details:not([open])"));
    for (const panel of printing) panel.print();
  });
  addEventListener("afterprint", () => printing.forEach((panel) => panel.plot && panel.draw()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    panels.forEach((panel) => panel.plot?.redraw(false, true)),
  );
  window.mbsfmuPlots = { panels, groups };

  class Chosen {
    constructor(section) {
      const data = JSON.parse(section.querySelector("script.data").textContent);
      this.place = section.querySelector(".plot-panels");
      this.group = groups.get(data.group);
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
