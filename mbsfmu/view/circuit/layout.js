// Places of a circuit: dagre orders components and nodes in rows, sources below; lines go along and across in between.
//
// What hangs at one node alone stands beside its trunk, a line up the node's block; every port at a tank has a tank.
(() => {
  "use strict";
  const ROW = 36, // height of what hangs at a node
    HEAD = 20, // of a node's name
    BODY = 56, // of a component
    TANK = 26, // below a component with ports at a tank
    SYMBOL = 44,
    TRACK = 9, // between lines that go along
    CHANNEL = 26, // at least, between rows
    PORT = 26, // at least, between ports
    NAME = "600 11.5px system-ui, sans-serif", // as in circuit.css
    KIND = "10px system-ui, sans-serif",
    MARGIN = 12;

  const pen = document.createElement("canvas").getContext("2d");

  function widthOf(text, font) {
    pen.font = font;
    return pen.measureText(text).width;
  }

  const wordsWidth = ({ name, kind }) => Math.max(widthOf(name, NAME), widthOf(kind, KIND));

  /** What is placed: components and nodes with their sizes, and the ports that lines go between. */
  function unitsOf(data) {
    const nodes = new Map(data.nodes.map((each) => [each.name, each]));
    const leaves = new Map();
    const units = new Map();
    for (const each of data.components.filter(({ symbol }) => symbol !== "tank")) {
      const inner = each.ports.filter(({ node }) => !nodes.get(node).tank);
      if (each.leaf) {
        const own = leaves.get(inner[0].node) ?? [];
        leaves.set(inner[0].node, [...own, each]);
        continue;
      }
      const tanks = each.ports.length - inner.length;
      const ports = Math.max(inner.length, 1) + tanks;
      const width = Math.max(SYMBOL + wordsWidth(each) + 14, PORT * ports);
      const height = BODY + (tanks ? TANK : 0);
      units.set(`component ${each.name}`, { component: each, width, height, level: each.level, inner });
    }
    for (const each of data.nodes.filter(({ tank }) => !tank)) {
      const own = leaves.get(each.name) ?? [];
      const drained = (leaf) => (leaf.ports.length > 1 ? 26 : 0);
      const widths = own.map((leaf) => 22 + SYMBOL + wordsWidth(leaf) + drained(leaf));
      const width = Math.max(widthOf(each.name, NAME) + 90, ...widths);
      units.set(`node ${each.name}`, { node: each, leaves: own, width, height: HEAD + ROW * own.length, level: each.level });
    }
    return units;
  }

  /** Let dagre order the rows; what it calls ranks are rows here. */
  function ordered(units) {
    const graph = new dagre.Graph({ multigraph: true });
    graph.setGraph({ rankdir: "BT", nodesep: 20, edgesep: 12, ranksep: 60 });
    for (const [name, { width, height }] of units) graph.setNode(name, { width, height });
    for (const [name, unit] of units) {
      for (const port of unit.inner ?? []) {
        const node = `node ${port.node}`;
        const upwards = units.get(node).level > unit.level;
        const [from, to] = upwards ? [name, node] : [node, name];
        graph.setEdge(from, to, { weight: port.sensed ? 1 : 3 }, port.port);
      }
    }
    dagre.layout(graph);
    return graph;
  }

  /** Rows from the lowest: the heights at which dagre has placed something. */
  function rowsOf(graph, units) {
    const heights = [...new Set([...units.keys()].map((name) => Math.round(graph.node(name).y)))].sort((a, b) => b - a);
    for (const [name, unit] of units) {
      const { x, y } = graph.node(name);
      Object.assign(unit, { x, row: heights.indexOf(Math.round(y)) });
    }
    return heights;
  }

  /** The lines: from a component's port to the trunk of its node, with the places at which they pass rows between. */
  function linesOf(graph, units, heights) {
    const lines = [];
    for (const [name, unit] of units) {
      for (const port of unit.inner ?? []) {
        const block = units.get(`node ${port.node}`);
        const upwards = block.row > unit.row;
        const ends = upwards ? [name, `node ${port.node}`] : [`node ${port.node}`, name];
        const edge = graph.edge({ v: ends[0], w: ends[1], name: port.port });
        const rows = upwards ? [unit.row, block.row] : [block.row, unit.row];
        const passed = [];
        for (let row = rows[0] + 1; row < rows[1]; row += 1) {
          const near = edge.points.reduce((one, other) =>
            Math.abs(other.y - heights[row]) < Math.abs(one.y - heights[row]) ? other : one,
          );
          passed.push({ row, x: near.x });
        }
        lines.push({ port, component: unit, block, upwards, passed: upwards ? passed : passed.reverse() });
      }
    }
    return lines;
  }

  /** Spread the ports of each component along its upper and its lower side, in the order of where they lead. */
  function spreadPorts(units, lines) {
    for (const unit of units.values()) {
      if (!unit.component) continue;
      const own = lines.filter((line) => line.component === unit);
      const tanks = unit.component.ports.filter((port) => !unit.inner.includes(port));
      unit.tanks = tanks.map((port) => ({ port }));
      for (const upwards of [true, false]) {
        const leading = own.filter((line) => line.upwards === upwards);
        leading.sort((one, other) => (one.passed[0]?.x ?? one.block.x) - (other.passed[0]?.x ?? other.block.x));
        const all = upwards ? leading : [...leading, ...unit.tanks];
        all.forEach((each, index) => (each.x = unit.x + unit.width * ((index + 1) / (all.length + 1) - 0.5)));
      }
    }
  }

  /** Pieces of lines along a channel between two rows; those of one node share a track, others that meet do not. */
  function tracksOf(lines, channels) {
    const pieces = Array.from({ length: channels }, () => []);
    for (const line of lines) {
      line.trunk = line.block.x - line.block.width / 2 + 6;
      const stops = [{ x: line.x }, ...line.passed, { x: line.trunk }];
      const first = line.component.row;
      line.pieces = stops.slice(1).map((stop, index) => {
        const channel = line.upwards ? first + index : first - 1 - index;
        const piece = { from: stops[index].x, to: stop.x, node: line.port.node, sensed: line.port.sensed };
        pieces[channel].push(piece);
        return piece;
      });
    }
    return pieces.map((own) => {
      const tracks = [];
      const groups = new Map();
      for (const piece of own) groups.set(piece.node, [...(groups.get(piece.node) ?? []), piece]);
      const spans = [...groups.values()].map((group) => {
        const ends = group.flatMap(({ from, to }) => [from, to]);
        return { group, low: Math.min(...ends), high: Math.max(...ends) };
      });
      for (const span of spans.sort((one, other) => one.high - one.low - (other.high - other.low))) {
        let track = tracks.findIndex((taken) => taken.every((other) => other.high + 8 < span.low || span.high + 8 < other.low));
        if (track < 0) track = tracks.push([]) - 1;
        tracks[track].push(span);
        for (const piece of span.group) piece.track = track;
      }
      return tracks.length;
    });
  }

  /** The lower and the upper end of a node's trunk: where lines meet it, or what hangs at it. */
  function trunkOf(unit, lines) {
    const places = unit.leaves.map((_, index) => unit.bottom - HEAD - ROW * (index + 0.5));
    if (lines.some(({ upwards }) => upwards)) places.push(unit.bottom);
    if (lines.some(({ upwards }) => !upwards)) places.push(unit.top);
    return { places: places.slice(0, unit.leaves.length), low: Math.max(...places), high: Math.min(...places) };
  }

  /** Place a circuit: `units` with their boxes, `lines` with their corners, and the size of it all. */
  function layoutOf(data) {
    const units = unitsOf(data);
    const graph = ordered(units);
    const heights = rowsOf(graph, units);
    const lines = linesOf(graph, units, heights);
    spreadPorts(units, lines);
    const tracks = tracksOf(lines, heights.length - 1);
    const tall = heights.map((_, row) => Math.max(...[...units.values()].filter((each) => each.row === row).map(({ height }) => height)));
    const channels = tracks.map((count) => Math.max(CHANNEL, TRACK * (count + 1)));
    const total = [...tall, ...channels].reduce((sum, each) => sum + each, 0) + 2 * MARGIN;
    const floors = []; // lower edges of the rows, from the lowest row
    let floor = total - MARGIN;
    tall.forEach((height, row) => {
      floors.push(floor);
      floor -= height + (channels[row] ?? 0);
    });
    for (const unit of units.values()) {
      const height = unit.component ? BODY : unit.height;
      // Nodes fill their row, so that their trunks are met from below and from above.
      unit.bottom = unit.component ? floors[unit.row] - (tall[unit.row] - unit.height) / 2 - (unit.height - BODY) : floors[unit.row];
      unit.top = unit.component ? unit.bottom - height : floors[unit.row] - tall[unit.row];
      if (unit.node) unit.trunk = trunkOf(unit, lines.filter(({ block }) => block === unit));
    }
    for (const line of lines) {
      const { component, block, upwards } = line;
      const corners = [[line.x, upwards ? component.top : component.bottom]];
      line.pieces.forEach((piece, index) => {
        const channel = upwards ? component.row + index : component.row - 1 - index;
        const height = floors[channel + 1] + TRACK * (piece.track + 1);
        corners.push([piece.from, height], [piece.to, height]);
      });
      corners.push([line.trunk, upwards ? block.bottom : block.top]);
      line.corners = corners;
    }
    // Lines may pass outside of all boxes: what is drawn begins at zero.
    const boxes = [...units.values()].flatMap(({ x, width }) => [x - width / 2, x + width / 2]);
    const across = [...boxes, ...lines.flatMap(({ corners }) => corners.map(([x]) => x))];
    const left = Math.min(...across) - MARGIN;
    for (const unit of units.values()) unit.x -= left;
    for (const line of lines) line.corners.forEach((corner) => (corner[0] -= left));
    for (const unit of units.values()) for (const each of unit.tanks ?? []) each.x -= left;
    return { units: [...units.values()], lines, width: Math.max(...across) - left + MARGIN, height: total };
  }

  window.mbsfmuCircuitLayout = { layoutOf };
})();
