// Plots over one axis: zoomed and moved together, with the values of all curves where the pointer or the keyboard is.
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
})();
