// Forces between two points: springs, cylinders with pressures, and others as plain lines.

"use strict";

(() => {
  const { Y } = MotionParts;
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

  Object.assign(MotionParts, { ForceLine, tube });
})();
