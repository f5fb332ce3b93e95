// Forces: between two points as springs, cylinders with pressures and plain lines; as arrows, with moments as curved ones, where
// they act, the largest of each kind being a share of the machine.

"use strict";

(() => {
  const { Y, unpacked } = MotionParts;
  const { colourOf } = window.mbsfmuPressureColours;

  const COILS = 9;

  class Coil extends THREE.Curve {
    getPoint(share, target = new THREE.Vector3()) {
      const turn = 2 * Math.PI * COILS * share;
      const width = share < 0.06 || share > 0.94 ? 0 : 1;
      return target.set(width * Math.cos(turn), share - 0.5, width * Math.sin(turn));
    }
  }

  function tube(radius, material, length = 1) {
    return new THREE.Mesh(new THREE.CylinderGeometry(radius, radius, length, 24, 1), material);
  }

  /** A force between two points, drawn anew at each time. */
  class ForceLine {
    constructor(data, size, look) {
      this.data = data;
      this.object = new THREE.Group();
      this.look = look;
      this.ends = [new THREE.Vector3(), new THREE.Vector3()];
      if (data.kind === "cylinder") this.makeCylinder(size);
      else if (data.kind === "spring") this.makeSpring();
      else this.makeLine(size);
    }

    makeLine(size) {
      this.body = tube(0.003 * size, this.look.material(0x5d6d7e));
      this.object.add(this.body);
    }

    makeSpring() {
      const coil = new THREE.TubeGeometry(new Coil(), 24 * COILS, 0.16, 6);
      this.body = new THREE.Mesh(coil, this.look.material(0x5d6d7e));
      this.body.scale.set(this.data.radius, 1, this.data.radius);
      this.object.add(this.body);
    }

    makeCylinder() {
      const sizes = this.data.cylinder ?? {};
      const bore = Math.max(sizes.bore ?? 0, this.data.radius);
      const rod = sizes.rod && sizes.bore ? (bore * sizes.rod) / sizes.bore : 0.5 * bore;
      const plain = (colour) =>
        this.look.ghost ? this.look.material(colour) : new THREE.MeshLambertMaterial({ color: colour });
      this.chambers = [tube(bore, plain(0x7f8c99)), tube(bore, plain(0x7f8c99))];
      this.rod = tube(rod, this.look.material(0xc8d0d8));
      this.eyes = [0, 1].map(() => {
        const eye = new THREE.Mesh(new THREE.SphereGeometry(1.1 * rod, 16, 12), this.look.material(0x2d3742));
        return eye;
      });
      this.object.add(...this.chambers, this.rod, ...this.eyes);
    }

    /** Place it between its ends; pressures are shares of the scale, or null where nobody knows them. */
    update(pressures, longest) {
      const [start, end] = this.ends;
      const gap = end.clone().sub(start);
      const length = gap.length();
      if (length === 0) return;
      gap.divideScalar(length);
      this.object.position.copy(start);
      this.object.quaternion.setFromUnitVectors(Y, gap);
      if (!this.chambers) {
        this.body.position.y = length / 2;
        this.body.scale.y = length;
        return;
      }
      const sizes = this.data.cylinder;
      const barrel = sizes ? sizes.barrel : 0.55 * longest;
      const extended = sizes ? length - sizes.retracted + sizes.dead : length - 0.5 * barrel;
      const piston = Math.min(Math.max(extended, 0.02 * barrel), 0.98 * barrel);
      this.stretch(this.chambers[0], 0, piston);
      this.stretch(this.chambers[1], piston, barrel);
      this.stretch(this.rod, piston, Math.max(length, barrel));
      this.eyes[1].position.y = length;
      this.chambers.forEach((chamber, index) => this.tint(chamber, pressures[index]));
    }

    stretch(object, from, to) {
      object.position.y = 0.5 * (from + to);
      object.scale.y = Math.max(to - from, 1e-9);
    }

    tint(chamber, share) {
      if (this.look.ghost) return;
      if (share === null || share === undefined) chamber.material.color.set(0x7f8c99);
      else chamber.material.color.setStyle(colourOf(share));
    }
  }

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

  Object.assign(MotionParts, { ForceLine, arrowsOf });
})();
