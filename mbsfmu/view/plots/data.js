// Curves as they stand in pages: unpacked, joined over all their places, found at one, and written as CSV.
(() => {
  "use strict";

  const bytes = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));

  function places(grid) {
    if (grid.values !== undefined) return Array.from(new Float64Array(bytes(grid.values).buffer));
    const result = [grid.start];
    let place = 0,
      pending = 0;
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
    let low = 0,
      high = x.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (x[middle] > place) high = middle;
      else low = middle;
    }
    return Math.abs(x[low] - place) <= Math.abs(x[high] - place) ? low : high;
  }

  function csv(data, own) {
    const [low, high] = own[0].group.shown;
    const curves = own.flatMap((panel) =>
      panel.curves.map((curve) => ({ ...curve, unit: panel.unit, panel: panel.label })),
    );
    const table = joined(curves, (value) => value);
    const cell = (text) => `"${text.replace(/"/g, '""')}"`;
    const named = (curve) => [curve.panel, curve.label].filter(Boolean).join(": ");
    const header = [
      `${data.axis.label} [${data.axis.unit}]`,
      ...curves.map((curve) => `${named(curve)} [${curve.unit}]`),
    ];
    const rows = table[0].map((place, row) => [place, ...curves.map((_, index) => table[1 + index][row] ?? "")]);
    return [header.map(cell), ...rows.filter(([place]) => place >= low && place <= high)]
      .map((row) => row.join(","))
      .join("\r\n");
  }

  window.mbsfmuPlotData = { places, values, joined, nearest, csv };
})();
