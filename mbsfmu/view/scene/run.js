// Runs of the machine: bodies at the frames and in between, and the paths of a chosen point.

"use strict";

(() => {
  const { ForceLine, Look, footOf, objectOf, railOf, symbolOf, unpacked } = MotionParts;

  const GHOST_COLOURS = ["#d62f6b", "#1f78c8", "#2e9e4f", "#8a4fd0"];

  class Run {
    constructor(data, index, payload, size) {
      this.label = data.label;
      this.ghost = index > 0;
      this.colour = this.ghost ? GHOST_COLOURS[(index - 1) % GHOST_COLOURS.length] : null;
      this.count = payload.bodies.length;
      this.reached = data.reached;
      this.poses = unpacked(data.poses);
      this.pressures = Object.fromEntries(Object.entries(data.pressures).map(([name, text]) => [name, unpacked(text)]));
      this.look = new Look(this.ghost, this.colour);
      this.object = new THREE.Group();
      this.bodies = payload.bodies.map((body) => this.makeBody(body));
      this.lines = payload.lines.map((line) => new ForceLine(line, size, this.look));
      for (const each of this.bodies) this.object.add(each);
      for (const each of this.lines) this.object.add(each.object);
      this.symbols = this.ghost ? [] : this.makeSymbols(payload, size);
      if (!this.ghost) {
        this.scenery = new THREE.Group();
        for (const shape of payload.scenery) this.scenery.add(objectOf(shape, 0x8a949e, this.look));
        this.object.add(this.scenery);
      }
      this.longest = this.lines.map((line) => this.longestOf(line));
    }

    makeBody(body) {
      const group = new THREE.Group();
      group.name = body.name;
      for (const shape of body.shapes) group.add(objectOf(shape, body.colour, this.look));
      return group;
    }

    makeSymbols(payload, size) {
      const up = new THREE.Vector3(...payload.up);
      return payload.joints.flatMap((joint) => {
        const made = [this.attach(joint, symbolOf(joint, size, this.look))];
        if (joint.rail) made.push(this.attach(joint.rail, railOf(joint.rail, ...this.travel(joint), size, this.look)));
        const base = joint.rail ?? joint;
        if (base.body < 0) made.push(this.attach(base, footOf(base, size, up, this.look)));
        return made;
      });
    }

    /** Put an object into the frame of the body that an end names. */
    attach(end, object) {
      (end.body < 0 ? this.object : this.bodies[end.body]).add(object);
      return object;
    }

    /** Return between which places in m along its rail a sleeve goes over the run. */
    travel(joint) {
      const along = new THREE.Vector3(...joint.rail.axis);
      const turned = new THREE.Quaternion();
      const [sleeve, rail] = [joint, joint.rail].map((end) => this.path(end));
      const places = [];
      for (let frame = 0; frame < this.reached; frame += 1) {
        const gap = new THREE.Vector3().fromArray(sleeve, 3 * frame).sub(new THREE.Vector3().fromArray(rail, 3 * frame));
        if (joint.rail.body >= 0) {
          this.poseOf(joint.rail.body, frame, 0, new THREE.Vector3(), turned);
          gap.applyQuaternion(turned.invert());
        }
        places.push(gap.dot(along));
      }
      return [Math.min(...places), Math.max(...places)];
    }

    /** Place all at a frame, which may lie between two; return whether the run came so far. */
    place(frame) {
      const last = this.reached - 1;
      const [below, share] = split(Math.min(frame, last), last);
      this.bodies.forEach((group, body) => this.poseOf(body, below, share, group.position, group.quaternion));
      this.object.visible = frame <= last + 1e-9;
      return this.object.visible;
    }

    poseOf(body, below, share, position, quaternion) {
      const [here, next] = [below, below + (share > 0 ? 1 : 0)].map((each) => 7 * (each * this.count + body));
      const poses = this.poses;
      position.fromArray(poses, here);
      quaternion.fromArray(poses, here + 3);
      if (share > 0) {
        position.lerp(new THREE.Vector3().fromArray(poses, next), share);
        quaternion.slerp(new THREE.Quaternion().fromArray(poses, next + 3), share);
      }
    }

    /** Move the bodies so many times as far from those of another run as they are; turn them no farther than half around. */
    exaggerate(other, factor) {
      this.bodies.forEach((group, body) => {
        const there = other.bodies[body];
        group.position.lerpVectors(there.position, group.position, factor);
        const turn = there.quaternion.clone().invert().multiply(group.quaternion);
        if (turn.w < 0) turn.set(-turn.x, -turn.y, -turn.z, -turn.w);
        const sine = Math.hypot(turn.x, turn.y, turn.z);
        if (sine === 0) return;
        const axis = new THREE.Vector3(turn.x, turn.y, turn.z).divideScalar(sine);
        turn.setFromAxisAngle(axis, Math.min(2 * factor * Math.atan2(sine, turn.w), Math.PI));
        group.quaternion.multiplyQuaternions(there.quaternion, turn);
      });
    }

    /** Place springs and cylinders between the bodies as they are. */
    placeLines(frame, scale) {
      const [below, share] = split(Math.min(frame, this.reached - 1), this.reached - 1);
      this.lines.forEach((line, index) => {
        line.data.ends.forEach((end, side) => this.pointNow(end, line.ends[side]));
        const shares = (line.data.nodes ?? []).map((node) => this.pressureShare(node, below, share, scale));
        line.update(shares, this.longest[index]);
      });
    }

    pressureShare(node, below, share, scale) {
      const values = this.pressures[node];
      if (!values || !scale) return null;
      const value = values[below] + (share > 0 ? share * (values[below + 1] - values[below]) : 0);
      return (value - scale.least) / (scale.greatest - scale.least);
    }

    pointNow(end, target) {
      target.set(...end.position);
      if (end.body < 0) return target;
      const group = this.bodies[end.body];
      return target.applyQuaternion(group.quaternion).add(group.position);
    }

    /** Return a body's point at all frames that the run reached, three numbers each. */
    path(end) {
      const found = new Float32Array(3 * this.reached);
      const position = new THREE.Vector3();
      const quaternion = new THREE.Quaternion();
      const point = new THREE.Vector3();
      for (let frame = 0; frame < this.reached; frame += 1) {
        point.set(...end.position);
        if (end.body >= 0) {
          this.poseOf(end.body, frame, 0, position, quaternion);
          point.applyQuaternion(quaternion).add(position);
        }
        point.toArray(found, 3 * frame);
      }
      return found;
    }

    longestOf(line) {
      const [one, other] = line.data.ends.map((end) => this.path(end));
      let most = 0;
      for (let at = 0; at < one.length; at += 3) {
        most = Math.max(most, Math.hypot(other[at] - one[at], other[at + 1] - one[at + 1], other[at + 2] - one[at + 2]));
      }
      return most;
    }
  }

  /** Return the frame below a place between frames, and the share of the way to the next one. */
  function split(frame, last) {
    const below = Math.min(Math.floor(frame), last);
    return [below, below === last ? 0 : frame - below];
  }

  /** The path of a chosen point, of every run, and how far the runs are apart there. */
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

  Object.assign(MotionParts, { Run, Trace, farthestPoint });
})();
