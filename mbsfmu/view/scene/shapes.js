// Shapes of bodies, and joints as symbols: from data to meshes.

"use strict";

const MotionParts = {};

(() => {
  const Y = new THREE.Vector3(0, 1, 0);
  const GHOSTLY = 0.4; // opacity of ghosts
  const EDGE_ANGLE = 30; // degrees between faces from which on an edge is drawn

  /** Decode numbers of four bytes from base64. */
  function unpacked(text, Kind = Float32Array) {
    const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
    return new Kind(bytes.buffer);
  }

  /** Materials of one run: a colour by body, pale and see-through for ghosts. */
  class Look {
    constructor(ghost, colour) {
      this.ghost = ghost;
      this.colour = colour;
      this.made = new Map();
    }

    material(colour) {
      const chosen = this.ghost ? this.colour : colour;
      if (!this.made.has(chosen)) {
        const ghostly = this.ghost ? { transparent: true, opacity: GHOSTLY, depthWrite: false } : {};
        this.made.set(chosen, new THREE.MeshLambertMaterial({ color: chosen, side: THREE.DoubleSide, ...ghostly }));
      }
      return this.made.get(chosen);
    }

    /** Let a ghost be seen as a solid thing, or through again. */
    solid(solid) {
      for (const material of this.made.values()) {
        Object.assign(material, { transparent: !solid, opacity: solid ? 1 : GHOSTLY, depthWrite: solid, needsUpdate: true });
      }
    }

    edges() {
      if (!this.lines) {
        const opacity = this.ghost ? 0.3 : 0.45;
        this.lines = new THREE.LineBasicMaterial({ color: 0x10161c, transparent: true, opacity });
      }
      return this.lines;
    }
  }

  function geometryOf(shape) {
    if (shape.kind === "box") return new THREE.BoxGeometry(...shape.size);
    if (shape.kind === "sphere") return new THREE.SphereGeometry(shape.radius, 24, 16);
    if (shape.kind === "cylinder") {
      return new THREE.CylinderGeometry(shape.radius, shape.radius, shape.length, 32).rotateX(Math.PI / 2);
    }
    if (shape.kind === "plate") {
      const outline = new THREE.Shape(shape.outline.map(([x, y]) => new THREE.Vector2(x, y)));
      const plate = new THREE.ExtrudeGeometry(outline, { depth: shape.thickness, bevelEnabled: false });
      return plate.translate(0, 0, -shape.thickness / 2);
    }
    if (shape.kind === "mesh") {
      const mesh = new THREE.BufferGeometry();
      mesh.setAttribute("position", new THREE.BufferAttribute(unpacked(shape.triangles), 3));
      mesh.computeVertexNormals();
      return mesh;
    }
    throw new Error(`no shape is called ${shape.kind}`);
  }

  /** Put an object between two points: its y axis points from one to the other. */
  function between(object, start, end) {
    const gap = end.clone().sub(start);
    const length = gap.length();
    object.position.copy(start).addScaledVector(gap, 0.5);
    if (length > 0) object.quaternion.setFromUnitVectors(Y, gap.divideScalar(length));
    return length;
  }

  function rodOf(shape, material) {
    const [start, end] = [shape.start, shape.end].map((each) => new THREE.Vector3(...each));
    const rod = new THREE.Mesh(new THREE.CapsuleGeometry(shape.radius, start.distanceTo(end), 6, 16), material);
    between(rod, start, end);
    return rod;
  }

  /** Return the object of a shape in its body's frame. */
  function objectOf(shape, colour, look) {
    const material = look.material(shape.colour ?? colour);
    if (shape.kind === "rod") return rodOf(shape, material);
    const geometry = geometryOf(shape);
    const object = new THREE.Mesh(geometry, material);
    object.position.set(...shape.position);
    object.quaternion.set(...shape.quaternion);
    if (shape.kind !== "sphere") {
      object.add(new THREE.LineSegments(new THREE.EdgesGeometry(geometry, EDGE_ANGLE), look.edges()));
    }
    return object;
  }

  const SYMBOL = 0x2d3742; // colour of joints, which dark pages change

  /** Return the sleeve of a slide: a tube with a collar at each end. */
  function sleeveOf(unit, material) {
    const sleeve = new THREE.Group();
    for (const [radius, length, place] of [[1, 4, 0], [1.35, 0.7, 1.9], [1.35, 0.7, -1.9]]) {
      const tube = new THREE.Mesh(new THREE.CylinderGeometry(radius * unit, radius * unit, length * unit, 24, 1, true), material);
      tube.position.y = place * unit;
      sleeve.add(tube);
    }
    return sleeve;
  }

  /** Return the rail of a slide, in the frame of its body, from one place along its axis in m to another. */
  function railOf(rail, from, to, size, look) {
    const unit = 0.016 * size;
    const [least, most] = [from - 4 * unit, to + 4 * unit];
    const object = new THREE.Mesh(new THREE.CylinderGeometry(0.55 * unit, 0.55 * unit, most - least, 16), look.material(0xa9b4be));
    const axis = new THREE.Vector3(...rail.axis);
    object.position.set(...rail.position).addScaledVector(axis, (least + most) / 2);
    object.quaternion.setFromUnitVectors(Y, axis);
    return object;
  }

  /** Return a joint's symbol in the frame of the body that carries it. */
  function symbolOf(joint, size, look) {
    const unit = 0.016 * size;
    if (joint.kind === "slide") return placedAt(joint, sleeveOf(unit, look.material(SYMBOL)));
    const geometry = {
      pin: () => new THREE.CylinderGeometry(unit, unit, 3.2 * unit, 20),
      ball: () => new THREE.SphereGeometry(1.3 * unit, 20, 14),
      fixed: () => new THREE.BoxGeometry(1.8 * unit, 1.8 * unit, 1.8 * unit),
    }[joint.kind]();
    return placedAt(joint, new THREE.Mesh(geometry, look.material(SYMBOL)));
  }

  function placedAt(joint, object) {
    object.position.set(...joint.position);
    object.quaternion.setFromUnitVectors(Y, new THREE.Vector3(...joint.axis));
    return object;
  }

  /** Return the foot under a joint of the ground. */
  function footOf(joint, size, up, look) {
    const height = 0.05 * size;
    const foot = new THREE.Mesh(new THREE.ConeGeometry(0.7 * height, height, 4), look.material(0x8a949e));
    foot.position.set(...joint.position).addScaledVector(up, -height / 2);
    foot.quaternion.setFromUnitVectors(Y, up);
    return foot;
  }

  Object.assign(MotionParts, { Look, SYMBOL, Y, between, footOf, objectOf, railOf, symbolOf, unpacked });
})();
