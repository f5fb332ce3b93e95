// Forces as arrows and moments as curved ones where they act; the largest of each kind is a share of the machine.

"use strict";

(() => {
  const { Y, tube, unpacked } = MotionParts;

  const LONGEST_ARROW = 0.25;
  const WIDEST_TURN = 0.11;
  const COLOURS = { force: 0xd64541, moment: 0x8a4fd0 };
  const TURN = 1.5 * Math.PI; // of a curved arrow, counter-clockwise to whom the moment points at
  const Z = new THREE.Vector3(0, 0, 1);

  class Arrows {
    constructor(arrows, size, kind) {
      this.ends = arrows;
      this.values = arrows.map((each) => unpacked(each.values));
      this.object = new THREE.Group();
      this.most = this.values.reduce((found, each) => Math.max(found, ...lengths(each)), 0);
      this.scale = this.most > 0 ? ((kind === "force" ? LONGEST_ARROW : WIDEST_TURN) * size) / this.most : 0;
      const material = new THREE.MeshLambertMaterial({ color: COLOURS[kind], depthTest: false, transparent: true });
      this.made = arrows.map(() => (kind === "force" ? straight(size, material) : curved(size, material)));
      if (arrows.length) this.object.add(...this.made.map((each) => each.object));
    }

    place(frame, run, shown) {
      const visible = Boolean(shown) && frame <= run.reached - 1;
      this.object.visible = visible;
      if (!visible) return;
      const at = 3 * Math.min(Math.round(frame), run.reached - 1);
      this.made.forEach((arrow, index) => {
        const load = new THREE.Vector3().fromArray(this.values[index], at).multiplyScalar(this.scale);
        run.pointNow(this.ends[index], arrow.object.position);
        arrow.point(load);
      });
    }
  }

  function lengths(values) {
    const found = [];
    for (let at = 0; at < values.length; at += 3) found.push(Math.hypot(values[at], values[at + 1], values[at + 2]));
    return found;
  }

  /** An arrow from a point on, in front of all else. */
  function straight(size, material) {
    const width = 0.007 * size;
    const shaft = tube(width, material);
    const head = new THREE.Mesh(new THREE.ConeGeometry(2.6 * width, 6 * width, 16), material);
    const object = inFront(shaft, head);
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

  /** A part of a circle about the z axis. */
  class Arc extends THREE.Curve {
    getPoint(share, target = new THREE.Vector3()) {
      return target.set(Math.cos(TURN * share), Math.sin(TURN * share), 0);
    }
  }

  /** An arrow around a moment, which turns as the moment does, in front of all else. */
  function curved(size, material) {
    const shaft = new THREE.Mesh(new THREE.TubeGeometry(new Arc(), 40, 0.07, 8), material);
    const head = new THREE.Mesh(new THREE.ConeGeometry(0.22, 0.5, 16), material);
    head.position.set(Math.cos(TURN) + 0.2, Math.sin(TURN), 0);
    head.quaternion.setFromUnitVectors(Y, new THREE.Vector3(-Math.sin(TURN), Math.cos(TURN), 0));
    const object = inFront(shaft, head);
    const point = (moment) => {
      const radius = moment.length();
      object.visible = radius > 0.01 * size;
      if (!object.visible) return;
      object.quaternion.setFromUnitVectors(Z, moment.divideScalar(radius));
      object.scale.setScalar(radius);
    };
    return { object, point };
  }

  function inFront(...parts) {
    const object = new THREE.Group();
    for (const each of parts) each.renderOrder = 1;
    object.add(...parts);
    return object;
  }

  /** Return the arrows of each kind of load. */
  function arrowsOf(payload, size) {
    const of = (kind) => new Arrows((payload.arrows ?? []).filter((each) => each.kind === kind), size, kind);
    return { force: of("force"), moment: of("moment") };
  }

  Object.assign(MotionParts, { arrowsOf });
})();
