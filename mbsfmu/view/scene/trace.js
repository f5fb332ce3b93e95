// The path of a chosen point, of every run, and how far the runs are apart there.

"use strict";

(() => {
  class Trace {
    constructor(runs) {
      this.runs = runs;
      this.object = new THREE.Group();
      this.paths = [];
    }

    /** Draw the path of a point of a body, ghosts' so many times as far off; of nothing where there is no end. */
    choose(end, colour, factor) {
      for (const line of this.object.children) line.geometry.dispose();
      this.object.clear();
      this.paths = end ? this.runs.map((run) => run.path(end)) : [];
      this.paths.forEach((own, index) => {
        const path = index ? exaggerated(this.paths[0], own, factor) : own;
        const run = this.runs[index];
        for (const opacity of [0.35, 1]) {
          const geometry = new THREE.BufferGeometry();
          geometry.setAttribute("position", new THREE.BufferAttribute(path, 3));
          const look = { color: run.colour ?? colour, transparent: true, opacity };
          const line = new THREE.Line(geometry, new THREE.LineBasicMaterial(look));
          line.frustumCulled = false;
          line.userData = { passed: opacity === 1, run };
          this.object.add(line);
        }
      });
    }

    place(frame) {
      for (const line of this.object.children) {
        if (line.userData.passed) line.geometry.setDrawRange(0, Math.min(Math.floor(frame) + 1, line.userData.run.reached));
      }
    }

    /** Return how far a ghost is from the first run at a frame, in m; null where one has ended. */
    apart(ghost, frame) {
      const at = Math.round(frame);
      if (at >= this.runs[ghost].reached || at >= this.runs[0].reached) return null;
      return distance(this.paths[0], this.paths[ghost], at);
    }

    largest(ghost) {
      return largestApart(this.paths[0], this.paths[ghost]);
    }
  }

  function exaggerated(one, other, factor) {
    return factor === 1 ? other : other.map((value, at) => (at < one.length ? one[at] + factor * (value - one[at]) : value));
  }

  function distance(one, other, frame) {
    const [x, y, z] = [0, 1, 2].map((axis) => one[3 * frame + axis] - other[3 * frame + axis]);
    return Math.hypot(x, y, z);
  }

  function largestApart(one, other) {
    let most = 0;
    for (let frame = 0; 3 * frame < Math.min(one.length, other.length); frame += 1) {
      most = Math.max(most, distance(one, other, frame));
    }
    return most;
  }

  /** Return the name of the point at which runs are farthest apart; an empty one where there is one run. */
  function farthestPoint(runs, points) {
    let [found, most] = ["", -1];
    if (runs.length < 2) return found;
    for (const [name, end] of points) {
      const paths = runs.map((run) => run.path(end));
      const apart = Math.max(...paths.slice(1).map((path) => largestApart(paths[0], path)));
      if (apart > most) [found, most] = [name, apart];
    }
    return found;
  }

  Object.assign(MotionParts, { Trace, farthestPoint });
})();
