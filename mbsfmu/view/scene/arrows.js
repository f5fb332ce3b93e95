// Forces as arrows at the points where they act; the longest one is a share of the machine.

"use strict";

(() => {
  const { Y, tube, unpacked } = MotionParts;

  const LONGEST_ARROW = 0.25;
  const ARROW_COLOUR = 0xd64541;

  class Arrows {
    constructor(arrows, values, size) {
      this.ends = arrows;
      this.values = values;
      this.object = new THREE.Group();
      const most = values.reduce((found, each) => Math.max(found, ...lengths(each)), 0);
      this.most = most;
      this.scale = most > 0 ? (LONGEST_ARROW * size) / most : 0;
      const material = new THREE.MeshLambertMaterial({ color: ARROW_COLOUR, depthTest: false, transparent: true });
      this.made = arrows.map(() => arrowOf(size, material));
      if (arrows.length) this.object.add(...this.made.map((each) => each.object));
    }

    place(frame, run, shown) {
      const visible = Boolean(shown) && frame <= run.reached - 1;
      this.object.visible = visible;
      if (!visible) return;
      const at = 3 * Math.min(Math.round(frame), run.reached - 1);
      this.made.forEach((arrow, index) => {
        const force = new THREE.Vector3().fromArray(this.values[index], at).multiplyScalar(this.scale);
        run.pointNow(this.ends[index], arrow.object.position);
        arrow.point(force);
      });
    }
  }

  function lengths(values) {
    const found = [];
    for (let at = 0; at < values.length; at += 3) found.push(Math.hypot(values[at], values[at + 1], values[at + 2]));
    return found;
  }

  /** An arrow from a point on, in front of all else. */
  function arrowOf(size, material) {
    const width = 0.007 * size;
    const shaft = tube(width, material);
    const head = new THREE.Mesh(new THREE.ConeGeometry(2.6 * width, 6 * width, 16), material);
    const object = new THREE.Group();
    for (const each of [shaft, head]) each.renderOrder = 1;
    object.add(shaft, head);
    const point = (force) => {
      const length = force.length();
      object.visible = length > width;
      if (!object.visible) return;
      object.quaternion.setFromUnitVectors(Y, force.divideScalar(length));
      const tip = Math.min(6 * width, 0.5 * length);
      head.scale.setScalar(tip / (6 * width));
      head.position.y = length - 0.5 * tip;
      shaft.position.y = 0.5 * (length - tip);
      shaft.scale.y = Math.max(length - tip, 1e-9);
    };
    return { object, point };
  }

  function arrowsOf(payload, run, size) {
    const arrows = payload.arrows ?? [];
    return new Arrows(arrows, arrows.map((each) => unpacked(each.values)), size);
  }

  Object.assign(MotionParts, { arrowsOf });
})();
