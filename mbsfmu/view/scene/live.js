// A scene whose poses come as they are computed: nothing is played, the machine is where it is.

"use strict";

(() => {
  const { MotionScene } = MotionParts;

  const PATH = 900; // points of the path of a point that stay, a quarter of a minute of pictures
  const PER_BODY = 12; // numbers: the origin, and the rotation matrix by rows

  /** The path of a chosen point, drawn behind it as it moves. */
  class LivePath {
    constructor() {
      this.object = new THREE.Group();
      this.places = new Float32Array(3 * PATH);
      this.count = 0;
      this.attribute = new THREE.BufferAttribute(this.places, 3);
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", this.attribute);
      this.line = new THREE.Line(geometry, new THREE.LineBasicMaterial());
      this.line.frustumCulled = false;
      this.object.add(this.line);
    }

    choose(end, colour) {
      this.line.material.color.set(colour);
      if (end !== this.end) this.clear();
      this.end = end;
    }

    clear() {
      this.count = 0;
      this.line.geometry.setDrawRange(0, 0);
    }

    grow(run) {
      if (!this.end) return;
      if (this.count === PATH) {
        this.places.copyWithin(0, 3);
        this.count -= 1;
      }
      run.pointNow(this.end, new THREE.Vector3()).toArray(this.places, 3 * this.count);
      this.count += 1;
      this.attribute.needsUpdate = true;
      this.line.geometry.setDrawRange(0, this.count);
    }
  }

  class LiveScene extends MotionScene {
    constructor(element, payload) {
      super(element, payload);
      const [run] = this.runs;
      this.scene.remove(this.trace.object);
      this.trace = null;
      this.path = new LivePath();
      this.scene.add(this.path.object);
      run.poses = run.poses.slice(0, 7 * run.count);
      for (const name of Object.keys(run.pressures)) run.pressures[name] = run.pressures[name].slice(0, 1);
      run.reached = 1;
      payload.time.count = 1;
      this.now = 0;
      for (const each of [this.panel.button, this.panel.slider, this.panel.clock]) each.parentElement?.remove();
      this.panel.speed.parentElement.remove();
      this.canvas.setAttribute("aria-label", `${payload.name}, live: drag to orbit, + and - zoom`);
      this.traceOf("");
    }

    get time() {
      return this.now ?? 0;
    }

    play() {}

    traceOf(name) {
      if (!this.path) return super.traceOf(name);
      this.panel.point.value = name;
      this.path.choose(this.points.get(name), this.ink);
      return this.redraw();
    }

    seekFrame(frame) {
      if (this.trace) super.seekFrame(frame);
      else this.place();
    }

    press(event) {
      const own = ["SELECT", "INPUT", "BUTTON"].includes(event.target.tagName);
      const factor = { "+": 0.87, "-": 1.15 }[event.key];
      if (own || !factor || event.ctrlKey || event.altKey || event.metaKey) return;
      this.zoom(factor);
      event.preventDefault();
    }

    /** Forget the path behind a point: the machine is elsewhere at once. */
    jump() {
      this.path.clear();
    }

    /** Place all: twelve numbers a body, and pressures of nodes in bar by name. */
    show(time, poses, pressures) {
      const [run] = this.runs;
      const matrix = new THREE.Matrix4();
      const turned = new THREE.Quaternion();
      for (let body = 0; body < run.count; body += 1) {
        const [x, y, z, ...r] = poses.subarray(PER_BODY * body, PER_BODY * (body + 1));
        matrix.set(r[0], r[1], r[2], 0, r[3], r[4], r[5], 0, r[6], r[7], r[8], 0, 0, 0, 0, 1);
        turned.setFromRotationMatrix(matrix);
        run.poses.set([x, y, z, turned.x, turned.y, turned.z, turned.w], 7 * body);
      }
      for (const [name, value] of Object.entries(pressures)) if (run.pressures[name]) run.pressures[name][0] = value;
      this.now = time;
      this.place();
      this.path.grow(run);
    }

    place() {
      const [run] = this.runs;
      run.place(0);
      run.placeLines(0, this.scale);
      run.symbols.forEach((symbol) => (symbol.visible = this.panel.boxes.joints.checked));
      this.redraw();
    }
  }

  Object.assign(MotionParts, { LiveScene });
})();
