// A scene whose poses come as they are computed: nothing is played, the machine is where it is.

"use strict";

(() => {
  const { MotionScene, cornersOf, lengthText, make } = MotionParts;

  const PATH = 900; // points of the path of a point that stay, a quarter of a minute of pictures
  const COARSEST = { card: 1, processor: 0.7 }; // pixels drawn for one of the page: it is looked at for long, and stays sharp
  const RESTING = 1000; // ms without a picture after which all pixels are drawn: more than a busy processor takes for one
  const LOOK = 300; // ms between two looks at whether all of the machine is seen
  const MARGIN = 0.05; // of the machine's radius, by which more is seen then
  const FAR = 20; // radii of the machine; what has left it farther behind is lost from sight
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

  /** Return the name of the point that moves farthest. */
  function longestPath(run, points) {
    const extents = [...points].map(([name, end]) => {
      const path = run.path(end);
      const box = new THREE.Box3().setFromArray(path);
      return [name, box.min.distanceTo(box.max)];
    });
    return extents.reduce((most, each) => (each[1] > most[1] ? each : most), ["", -1])[0];
  }

  class LiveScene extends MotionScene {
    constructor(element, payload, drawer) {
      super(element, payload, drawer);
      const farthest = this.runs.length > 1 ? longestPath(this.runs[0], this.points) : "";
      this.scene.remove(this.trace.object);
      this.trace = null;
      this.path = new LivePath();
      this.scene.add(this.path.object);
      this.lost = this.runs.map(() => false); // whether a run has ended before the others
      for (const run of this.runs) {
        run.poses = run.poses.slice(0, 7 * run.count);
        for (const name of Object.keys(run.pressures)) run.pressures[name] = run.pressures[name].slice(0, 1);
        run.reached = 1;
      }
      payload.time.count = 1;
      this.most = this.now = this.lookedAt = 0;
      this.reached = this.all.clone(); // where the machine has been
      this.controls.addEventListener("start", () => (this.fitted = false)); // somebody chooses a view
      if (this.runs.length > 1) this.makeBeside();
      for (const each of [this.panel.button, this.panel.slider, this.panel.clock]) each.parentElement?.remove();
      this.panel.speed.parentElement.remove();
      this.canvas.setAttribute("aria-label", `${payload.name}, live: drag to orbit, + and - zoom`);
      this.traceOf(farthest);
    }

    /** Let ghosts stand beside the first run where that is wished. */
    makeBeside() {
      const box = make("input", { type: "checkbox" });
      box.addEventListener("change", () => this.setBeside(box.checked));
      this.panel.fit.before(make("label", { className: "box" }, box, "side by side"));
      this.together = this.corners;
    }

    setBeside(beside) {
      const across = new THREE.Vector3().crossVectors(this.up, this.way).normalize();
      const places = this.together.map((corner) => corner.dot(across));
      const width = 1.05 * (Math.max(...places) - Math.min(...places));
      this.beside = beside;
      this.corners = this.together;
      this.runs.slice(1).forEach((run, index) => {
        run.object.position.copy(across).multiplyScalar(beside ? (index + 1) * width : 0);
        run.look.solid(beside);
        if (beside) this.corners = [...this.corners, ...this.together.map((corner) => corner.clone().add(run.object.position))];
      });
      this.fit();
      this.place();
    }

    get time() {
      return this.now ?? 0;
    }

    play() {}

    traceOf(name) {
      if (!this.path) return super.traceOf(name);
      this.panel.point.value = name;
      this.path.choose(this.points.get(name), this.ink);
      this.most = 0;
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
      this.most = 0;
    }

    /** Place all: of each run twelve numbers a body, or null where it has ended, and pressures of nodes in bar by name. */
    show(time, poses, pressures) {
      this.runs.forEach((run, index) => {
        this.lost[index] = !poses[index];
        if (poses[index]) this.take(run, poses[index]);
        for (const [name, value] of Object.entries(pressures)) if (run.pressures[name]) run.pressures[name][0] = value;
      });
      this.now = time;
      this.widenScale();
      this.place();
      this.path.grow(this.runs[0]);
      const now = performance.now();
      if (now - this.lookedAt > LOOK) this.lookAround(now);
      this.keepUp(now);
    }

    /** Let the scale contain the present pressures. */
    widenScale() {
      const present = Object.values(this.runs[0].pressures)
        .map(([value]) => value)
        .filter(Number.isFinite);
      if (!this.scale || !present.length) return;
      const least = Math.min(this.scale.least, ...present);
      const greatest = Math.max(this.scale.greatest, ...present);
      if (least === this.scale.least && greatest === this.scale.greatest) return;
      this.scale = { least, greatest };
      this.showScale();
    }

    /** Take in where the machine has come to; see all of it again, unless somebody has chosen a view. */
    lookAround(now) {
      this.lookedAt = now;
      const box = new THREE.Box3().setFromObject(this.runs[0].object);
      const far = box.min.distanceTo(this.centre) + box.max.distanceTo(this.centre);
      if (this.reached.containsBox(box) || !(far < FAR * this.radius)) return;
      this.reached.union(box.expandByScalar(MARGIN * this.radius));
      const corners = [...(this.together ?? this.corners), ...cornersOf(box)];
      if (this.together) this.together = corners;
      if (!this.beside) this.corners = corners;
      if (this.fitted) this.fit();
    }

    /** Draw fewer of the pixels of a fine screen while pictures come slowly, and all of them once nothing moves. */
    keepUp(now) {
      const passed = now - (this.shownAt ?? -Infinity);
      this.shownAt = now;
      if (passed < RESTING) {
        if (this.renderer.getPixelRatio() !== this.coarse) this.renderer.setPixelRatio(this.coarse);
        this.keepPace(passed / 1000, COARSEST[this.drawer]);
      }
      clearTimeout(this.resting);
      this.resting = setTimeout(() => {
        this.renderer.setPixelRatio(this.fine);
        this.redraw();
      }, RESTING);
    }

    take(run, poses) {
      const matrix = new THREE.Matrix4();
      const turned = new THREE.Quaternion();
      for (let body = 0; body < run.count; body += 1) {
        const [x, y, z, ...r] = poses.subarray(PER_BODY * body, PER_BODY * (body + 1));
        matrix.set(r[0], r[1], r[2], 0, r[3], r[4], r[5], 0, r[6], r[7], r[8], 0, 0, 0, 0, 1);
        turned.setFromRotationMatrix(matrix);
        run.poses.set([x, y, z, turned.x, turned.y, turned.z, turned.w], 7 * body);
      }
    }

    place() {
      const [first, ...ghosts] = this.runs;
      for (const run of this.runs) run.place(0);
      if (ghosts.length) this.panel.showApart(this.apartNow());
      ghosts.forEach((run, index) => {
        if (!this.beside) run.exaggerate(first, Number(this.panel.factor.value));
        run.object.visible = !this.lost[index + 1] && this.panel.boxes[`run${index + 1}`].checked;
      });
      for (const run of this.runs) run.placeLines(0, this.scale);
      first.symbols.forEach((symbol) => (symbol.visible = this.panel.boxes.joints.checked));
      this.redraw();
    }

    /** Say how far the chosen point of the second run is from that of the first one. */
    apartNow() {
      const { end } = this.path;
      if (!end || this.lost[1]) return [];
      const [one, other] = this.runs.map((run) => run.pointNow(end, new THREE.Vector3()));
      const apart = one.distanceTo(other);
      this.most = Math.max(this.most, apart);
      const told = `${lengthText(apart)} off now, ${lengthText(this.most)} at most`;
      return [`${this.runs[1].label}: ${this.panel.point.value} is ${told}`];
    }
  }

  Object.assign(MotionParts, { LiveScene });
})();
