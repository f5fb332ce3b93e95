// Circuits of a recorded run: they take their values from the curves of the page's plots, at the time that these show.
(() => {
  "use strict";
  const { nearest } = window.mbsfmuPlotData;

  for (const { circuit } of document.querySelectorAll(".mbsfmu-circuit")) {
    const group = window.mbsfmuPlots.groups.get(circuit.data.group);
    if (!group) continue;
    const curves = new Map(group.panels.flatMap((panel) => panel.curves.map((curve) => [curve.label, curve])));
    const valueAt = (place) => (source) => {
      const curve = curves.get(source);
      return curve?.y[nearest(curve.x, place)];
    };
    group.following.push((place) => place !== null && circuit.show(valueAt(place)));
    circuit.show(valueAt(group.place ?? group.ends[0]));
  }
})();
