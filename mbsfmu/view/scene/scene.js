// A mechanism in motion: the picture, what is played, and what a page may do with it.

"use strict";

(() => {
  const { Panel, Run, SYMBOL, Trace, Triad, Y, arrowsOf, farthestPoint, legendOf, lengthText, make, recordingOf } = MotionParts;

  const SMOOTH = 1 / 60; // s from picture to picture, as it should be
  const SLOW = { card: 1 / 25, processor: 1 / 45 }; // s from picture to picture, from which on fewer pixels are drawn
  const COARSEST = 0.6; // pixels drawn for one of the page, along each side
  const SEEN_FRAMES = 60; // of the path of a point, which a picture has room for
  const SIDES = { front: [0.06, 0.1, 1], side: [1, 0.1, 0.06], top: [0, 1, 0.001] };

  /** Return the box around a body in its own frame. */
  function boxOf(group) {
    group.position.set(0, 0, 0);
    group.quaternion.identity();
    return new THREE.Box3().setFromObject(group);
  }

  function cornersOf(box) {
    const sides = [box.min, box.max];
    return [0, 1, 2, 3, 4, 5, 6, 7].map(
      (each) => new THREE.Vector3(sides[each & 1].x, sides[(each >> 1) & 1].y, sides[each >> 2].z),
    );
  }

  class MotionScene {
    /** drawer: "card" or "processor", which draws pictures. */
    constructor(element, payload, drawer) {
      this.drawer = drawer;
      this.element = element;
      this.payload = payload;
      this.frame = 0;
      this.playing = false;
      const [low, high] = [payload.lowest, payload.highest].map((each) => new THREE.Vector3(...each));
      this.size = Math.max(...high.clone().sub(low).toArray()) || 1;
      this.runs = payload.runs.map((run, index) => new Run(run, index, payload, this.size));
      this.points = pointsOf(payload);
      this.scale = scaleOf(this.runs[0]);
      this.measure(low, high);
      this.makePicture();
      this.makePage();
      this.listen();
      this.applyTheme();
      this.look("oblique");
      const point = farthestPoint(this.runs, this.points);
      if (point) this.traceOf(point);
      this.seekFrame(0);
      this.resize();
    }

    // -- making -----------------------------------------------------------------------------------------------

    /** Find the middle and the extent of all: of points and of the shapes of bodies over time, and of what stands. */
    measure(low, high) {
      const [run] = this.runs;
      const ends = [...this.points.values()];
      run.bodies.forEach((group, body) => {
        const box = boxOf(group);
        if (!box.isEmpty()) ends.push(...cornersOf(box).map((corner) => ({ body, position: corner.toArray() })));
      });
      run.place(0);
      const shapes = new THREE.Box3().setFromObject(run.object);
      this.corners = cornersOf(shapes);
      for (const place of Object.values(this.payload.ground)) this.corners.push(new THREE.Vector3(...place));
      for (const end of ends) {
        const path = run.path(end);
        const apart = 3 * Math.ceil(path.length / 3 / SEEN_FRAMES);
        for (let at = 0; at < path.length; at += apart) this.corners.push(new THREE.Vector3().fromArray(path, at));
      }
      this.all = shapes.expandByPoint(low).expandByPoint(high);
      for (const corner of this.corners) this.all.expandByPoint(corner);
      this.centre = this.all.getCenter(new THREE.Vector3());
      this.radius = 0.5 * this.all.min.distanceTo(this.all.max) || 1;
    }

    makePicture() {
      // Of the processor's time smooth edges take as much as all else; at rest it draws twice as fine instead.
      this.renderer = new THREE.WebGLRenderer({ antialias: this.drawer === "card", alpha: true });
      this.coarse = Math.min(window.devicePixelRatio || 1, 2); // as it moves
      this.fine = this.drawer === "card" ? this.coarse : 2; // at rest
      this.renderer.setPixelRatio(this.fine);
      this.canvas = this.renderer.domElement;
      this.scene = new THREE.Scene();
      this.camera = new THREE.PerspectiveCamera(35, 1, 0.01 * this.size, 100 * this.size);
      this.up = new THREE.Vector3(...this.payload.up);
      this.camera.up.copy(this.up);
      this.controls = new THREE.OrbitControls(this.camera, this.canvas);
      this.sun = new THREE.DirectionalLight(0xffffff, 1.7);
      this.sky = new THREE.HemisphereLight(0xffffff, 0x6a7480, 1.9);
      this.sky.position.copy(this.up);
      this.trace = new Trace(this.runs);
      this.arrows = arrowsOf(this.payload, this.size);
      this.scene.add(this.sun, this.sky, this.trace.object, this.arrows.force.object, this.arrows.moment.object, this.makeGrid());
      this.scene.add(...this.runs.map((run) => run.object));
    }

    /** Return the floor: what stands on it says where that is; elsewhere all is above it. */
    makeGrid() {
      const decade = 10 ** Math.floor(Math.log10(this.size));
      const cell = this.size > 4 * decade ? decade : 0.5 * decade;
      const cells = 2 * Math.ceil((1.5 * this.size) / cell);
      this.cell = cell;
      this.grid = new THREE.GridHelper(cells * cell, cells);
      this.grid.material.transparent = true;
      this.grid.material.opacity = 0.35;
      this.grid.quaternion.setFromUnitVectors(Y, this.up);
      const standing = new THREE.Box3().setFromObject(this.runs[0].scenery);
      const box = standing.isEmpty() ? this.all : standing;
      const least = (axis) => Math.min(box.min[axis] * this.up[axis], box.max[axis] * this.up[axis]);
      const floor = least("x") + least("y") + least("z") - (standing.isEmpty() ? 0.06 * this.size : 0);
      this.grid.position.copy(this.centre).addScaledVector(this.up, floor - this.centre.dot(this.up));
      return this.grid;
    }

    makePage() {
      const name = this.element.getAttribute("aria-label") || this.payload.name;
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("role", "application");
      this.canvas.setAttribute("aria-roledescription", "moving picture");
      this.canvas.setAttribute("aria-label", `${name}: drag to orbit, space plays, arrow keys scrub, + and - zoom`);
      this.panel = new Panel(this.payload, this.runs, this.points, this.arrows);
      this.picture = make("div", { className: "picture" }, this.canvas);
      this.legend = make("p", { className: "legend" });
      this.showScale();
      this.triad = new Triad(this.size);
      this.picture.append(this.legend, ...this.triad.letters);
      const notes = this.payload.notes.map((note) => make("li", { textContent: note }));
      this.element.append(this.picture, this.panel.element);
      if (notes.length) this.element.append(make("ul", { className: "notes" }, ...notes));
      this.panel.showPlaying(false);
    }

    /** Write the scale of pressures and the width of the grid. */
    showScale() {
      this.legend.replaceChildren(...(this.scale ? legendOf(this.scale) : []), `grid ${lengthText(this.cell)}`);
    }

    listen() {
      const { panel, canvas, controls } = this;
      panel.button.addEventListener("click", () => this.toggle());
      panel.slider.addEventListener("input", () => this.seekFrame(Number(panel.slider.value)));
      panel.point.addEventListener("change", () => this.traceOf(panel.point.value));
      panel.factor.addEventListener("change", () => this.traceOf(panel.point.value));
      panel.view.addEventListener("change", () => this.look(panel.view.value));
      panel.fit.addEventListener("click", () => this.fit());
      panel.video?.addEventListener("click", () => this.record());
      for (const box of Object.values(panel.boxes)) box.addEventListener("change", () => this.seekFrame(this.frame));
      controls.addEventListener("change", () => this.redraw());
      // A page is scrolled over a picture that nobody has chosen.
      const passing = (event) => document.activeElement !== canvas && !event.ctrlKey && event.stopImmediatePropagation();
      this.picture.addEventListener("wheel", passing, { capture: true });
      canvas.addEventListener("pointerdown", () => canvas.focus({ preventScroll: true }));
      this.element.addEventListener("keydown", (event) => this.press(event));
      this.element.addEventListener("seek", (event) => this.seek(event.detail.time));
      new ResizeObserver(() => this.resize()).observe(this.picture);
      const themed = () => this.applyTheme();
      window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themed);
      const watcher = new MutationObserver(themed);
      for (const each of [document.documentElement, document.body]) watcher.observe(each, { attributes: true });
    }

    // -- what pages and keys do -------------------------------------------------------------------------------

    get time() {
      const { start, stop, count } = this.payload.time;
      return start + ((stop - start) * this.frame) / (count - 1);
    }

    /** Go to a time in s. */
    seek(time) {
      const { start, stop, count } = this.payload.time;
      this.seekFrame(((time - start) / (stop - start)) * (count - 1));
    }

    play() {
      this.playing = true;
      this.before = null;
      this.renderer.setPixelRatio(this.coarse);
      if (this.frame >= this.payload.time.count - 1) this.seekFrame(0);
      this.panel.showPlaying(true);
      this.redraw();
    }

    pause() {
      this.playing = false;
      this.panel.showPlaying(false);
      this.renderer.setPixelRatio(this.fine);
      this.redraw();
    }

    /** Save a video: of the whole run, or of what is seen until the button is pressed again where nothing is played. */
    record() {
      if (this.recording) return this.recording.stop();
      this.scene.background = this.backdrop; // a video knows no transparency
      this.recording = recordingOf(this.canvas, this.payload.name, () => {
        this.scene.background = null;
        this.recording = null;
        this.panel.showRecording(false);
        this.redraw();
      });
      this.panel.showRecording(true);
      this.seekFrame(0);
      return this.play();
    }

    toggle() {
      if (this.playing) this.pause();
      else this.play();
    }

    /** Return where a point is now in m, given as `body.point`, in a run by its index. */
    point(name, run = 0) {
      return this.runs[run].pointNow(this.points.get(name), new THREE.Vector3()).toArray();
    }

    traceOf(name) {
      this.panel.point.value = name;
      this.trace.choose(this.points.get(name), this.ink, Number(this.panel.factor.value));
      this.seekFrame(this.frame);
    }

    /** See it from one side: oblique, front, side or top. */
    look(name) {
      const across = new THREE.Vector3(...this.payload.across);
      const planar = across.lengthSq() > 0 && Math.abs(across.dot(this.up)) < 0.5;
      let side = Math.abs(this.up.x) < 0.9 ? new THREE.Vector3(1, 0, 0) : new THREE.Vector3(0, 1, 0);
      if (planar) side = new THREE.Vector3().crossVectors(this.up, across).normalize();
      const front = planar ? across : new THREE.Vector3().crossVectors(side, this.up).normalize();
      const [x, y, z] = SIDES[name] ?? (planar ? [0.35, 0.3, 1] : [0.55, 0.4, 0.8]);
      const way = new THREE.Vector3().addScaledVector(side, x).addScaledVector(this.up, y).addScaledVector(front, z);
      this.way = way.normalize();
      this.fit();
    }

    /** Move the camera to where all of it is seen. */
    fit() {
      const high = Math.tan((0.5 * this.camera.fov * Math.PI) / 180);
      const wide = high * this.camera.aspect;
      const across = new THREE.Vector3().crossVectors(this.up, this.way).normalize();
      const upwards = new THREE.Vector3().crossVectors(this.way, across);
      // The nearest place from which four planes through it have all corners inside: wide = tan(half angle across).
      const [side, height] = [
        [across, wide],
        [upwards, high],
      ].map(([axis, slope]) => {
        const bound = (sign) =>
          Math.max(...this.corners.map((corner) => sign * corner.dot(axis) + slope * corner.dot(this.way)));
        const [right, left] = [bound(1), bound(-1)];
        return { middle: (right - left) / 2, depth: (right + left) / (2 * slope) };
      });
      const depth = Math.max(side.depth, height.depth);
      const seen = this.centre.dot(this.way);
      this.controls.target.set(0, 0, 0).addScaledVector(across, side.middle).addScaledVector(upwards, height.middle);
      this.controls.target.addScaledVector(this.way, seen);
      const away = 1.06 * Math.max(depth - seen, 0.1 * this.radius);
      this.camera.position.copy(this.controls.target).addScaledVector(this.way, away);
      this.controls.update();
      this.fitted = true;
      this.redraw();
    }

    press(event) {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const { target } = event;
      const own = ["SELECT", "INPUT", "BUTTON"].includes(target.tagName);
      if (event.key === " " && (!own || target === this.panel.slider)) this.toggle();
      else if (own || !this.moved(event)) return;
      event.preventDefault();
    }

    moved(event) {
      const { start, stop, count } = this.payload.time;
      const step = event.shiftKey ? Math.max(1, Math.round((count - 1) / (stop - start))) : 1;
      const away = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step }[event.key];
      if (away) this.seekFrame(Math.round(this.frame) + away);
      else if (event.key === "Home") this.seekFrame(0);
      else if (event.key === "End") this.seekFrame(count - 1);
      else if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 0.87 : 1.15);
      else return false;
      return true;
    }

    zoom(factor) {
      const { target } = this.controls;
      this.camera.position.sub(target).multiplyScalar(factor).add(target);
      this.fitted = false;
      this.controls.update();
      this.redraw();
    }

    // -- drawing ----------------------------------------------------------------------------------------------

    seekFrame(frame) {
      this.frame = Math.min(Math.max(frame, 0), this.payload.time.count - 1);
      this.runs.forEach((run, index) => {
        const there = run.place(this.frame);
        if (there && index) run.exaggerate(this.runs[0], Number(this.panel.factor.value));
        if (there) run.placeLines(this.frame, this.scale);
        run.object.visible = there && (index === 0 || this.panel.boxes[`run${index}`].checked);
      });
      this.runs[0].symbols.forEach((symbol) => (symbol.visible = this.panel.boxes.joints.checked));
      for (const [kind, each] of Object.entries(this.arrows)) {
        each.place(this.frame, this.runs[0], this.panel.boxes[kind]?.checked);
      }
      this.trace.place(this.frame);
      this.panel.showTime(this.time, this.frame);
      this.panel.showApart(this.trace.paths.length ? this.apartTexts() : []);
      this.element.dispatchEvent(new CustomEvent("timechange", { detail: { time: this.time } }));
      this.redraw();
    }

    apartTexts() {
      return this.runs.slice(1).map((run, index) => {
        const now = this.trace.apart(index + 1, this.frame);
        const most = `${lengthText(this.trace.largest(index + 1))} at most`;
        return `${run.label}: ${this.panel.point.value} is ${now === null ? "" : `${lengthText(now)} off now, `}${most}`;
      });
    }

    redraw() {
      this.waiting ??= requestAnimationFrame((now) => this.draw(now));
    }

    draw(now) {
      this.waiting = null;
      if (this.playing) this.advance(now);
      this.sun.position.copy(this.camera.position).addScaledVector(this.up, this.radius);
      this.renderer.render(this.scene, this.camera);
      this.triad.draw(this.renderer, this.camera);
      if (this.playing) this.redraw();
    }

    advance(now) {
      const passed = this.before === null ? 0 : Math.min((now - this.before) / 1000, 0.25);
      if (passed > 0) this.keepPace(passed);
      this.before = now;
      const { start, stop, count } = this.payload.time;
      const frame = this.frame + (passed * Number(this.panel.speed.value) * (count - 1)) / (stop - start);
      if (frame > count - 1) this.recording?.stop();
      this.seekFrame(frame > count - 1 ? 0 : frame);
    }

    /** Draw fewer pixels where this machine cannot draw as many in time. */
    keepPace(passed, coarsest = COARSEST) {
      this.pace = 0.9 * (this.pace ?? SMOOTH) + 0.1 * passed;
      if (this.pace < SLOW[this.drawer] || this.coarse <= coarsest) return;
      this.coarse = Math.max(0.8 * this.coarse, coarsest);
      this.renderer.setPixelRatio(this.coarse);
      this.pace = SMOOTH;
    }

    resize() {
      const { clientWidth: width, clientHeight: height } = this.picture;
      if (!width || !height) return;
      this.renderer.setSize(width, height, false);
      this.camera.aspect = width / height;
      this.camera.updateProjectionMatrix();
      this.fit();
    }

    /** Take the ink of the page: light on a dark one. */
    applyTheme() {
      const ink = new THREE.Color().setStyle(getComputedStyle(this.element).color);
      const dark = 0.3 * ink.r + 0.6 * ink.g + 0.1 * ink.b > 0.35;
      this.element.dataset.theme = dark ? "dark" : "light";
      this.ink = dark ? 0xf2c14e : 0x1d2733;
      this.runs[0].look.material(SYMBOL).color.set(dark ? 0xb9c6d3 : SYMBOL);
      this.backdrop = new THREE.Color(dark ? 0x171d24 : 0xe4e9ee);
      this.grid.material.color?.set(dark ? 0x9aa7b4 : 0x707b86);
      this.grid.material.vertexColors = false;
      this.grid.material.needsUpdate = true;
      this.traceOf(this.panel.point.value);
    }
  }

  /** Return body and place of all points by `body.point`. */
  function pointsOf(payload) {
    const bodies = payload.bodies.flatMap((body, index) =>
      Object.entries(body.points).map(([name, position]) => [`${body.name}.${name}`, { body: index, position }]),
    );
    return new Map(bodies);
  }

  /** Return least and greatest pressure; null where there is none. */
  function scaleOf(run) {
    const every = Object.values(run.pressures);
    if (!every.length) return null;
    const least = Math.min(...every.map((values) => values.reduce((one, other) => Math.min(one, other))));
    const greatest = Math.max(...every.map((values) => values.reduce((one, other) => Math.max(one, other))));
    return { least, greatest: greatest > least ? greatest : least + 1 };
  }

  /** Make a scene of every element that waits for one; where it cannot be drawn, a sentence says so. */
  function begin() {
    for (const element of document.querySelectorAll(".mbsfmu-scene:not([data-begun])")) {
      element.dataset.begun = "";
      const payload = JSON.parse(element.querySelector("script").textContent);
      const drawer = drawerOfPage();
      if (!drawer) {
        const sentence = "This browser has no WebGL, without which the motion cannot be drawn in three dimensions.";
        element.append(make("p", { className: "without", textContent: sentence }));
        continue;
      }
      element.scene = new ("live" in element.dataset ? MotionParts.LiveScene : MotionScene)(element, payload, drawer);
      if ("play" in element.dataset && !window.matchMedia("(prefers-reduced-motion: reduce)").matches) element.scene.play();
    }
  }

  /** Return what draws: "card", "processor", or nothing where there is no WebGL. */
  function drawerOfPage() {
    const context = document.createElement("canvas").getContext("webgl2");
    if (!context) return "";
    let name = context.getParameter(context.RENDERER);
    const told = /webkit/i.test(name) && context.getExtension("WEBGL_debug_renderer_info"); // Chromium hides it there
    if (told) name = context.getParameter(told.UNMASKED_RENDERER_WEBGL);
    context.getExtension("WEBGL_lose_context")?.loseContext();
    return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name) ? "processor" : "card";
  }

  Object.assign(MotionParts, { MotionScene, cornersOf });
  window.mbsfmuScenes = { begin };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
