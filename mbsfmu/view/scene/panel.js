// What is beside the picture: play, time, speed, traced point, view, what is shown; the directions of the axes; videos.

"use strict";

(() => {
  const { Y } = MotionParts;
  const { gradient } = window.mbsfmuPressureColours;

  const SPEEDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];
  const FACTORS = [1, 10, 100, 1000, 10000];
  const LONGEST_SHOW = 60; // s that a run takes to be seen, unless told otherwise
  const SHORTEST_SHOW = 2;

  function make(kind, properties = {}, ...children) {
    const { data, ...rest } = properties;
    const element = Object.assign(document.createElement(kind), rest);
    for (const [name, value] of Object.entries(data ?? {})) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  /** Return a number with its unit, as 12.3 mm. */
  function lengthText(metres) {
    if (metres === 0) return "0 mm";
    const [unit, factor] = metres < 1e-5 ? ["µm", 1e6] : metres < 1 ? ["mm", 1e3] : ["m", 1];
    return `${(metres * factor).toPrecision(3)} ${unit}`;
  }

  /** Return a force or moment with its unit, as 12.3 kN. */
  function loadText(load, unit) {
    const [prefix, factor] = load < 1e3 ? ["", 1] : load < 1e6 ? ["k", 1e-3] : ["M", 1e-6];
    return `${(load * factor).toPrecision(3)} ${prefix}${unit}`;
  }

  class Panel {
    constructor(payload, runs, points, arrows) {
      const { start, stop, count } = payload.time;
      this.button = make("button", { type: "button", className: "play" });
      this.slider = make("input", { type: "range", min: 0, max: count - 1, step: 1, value: 0 });
      this.slider.setAttribute("aria-label", "time");
      this.clock = make("output", { className: "clock" });
      this.digits = Math.max(0, Math.min(4, 2 - Math.floor(Math.log10((stop - start) / 10))));
      const span = stop - start;
      const wanted = Math.min(Math.max(span, SHORTEST_SHOW), LONGEST_SHOW);
      const usual = SPEEDS.reduce((best, each) => (closer(span / each, span / best, wanted) ? each : best));
      this.speed = choice("speed", SPEEDS.map((each) => [each, `${each} ×`]), usual);
      this.point = choice("trace of", [["", "no point"], ...[...points.keys()].map((name) => [name, name])], "");
      this.view = choice("view", [["oblique", "oblique"], ["front", "front"], ["side", "side"], ["top", "top"]], "oblique");
      this.factor = choice("ghosts off", FACTORS.map((each) => [each, `${each} ×`]), 1);
      this.factor.parentElement.append(" as far");
      this.fit = make("button", { type: "button", className: "fit", textContent: "fit", title: "see all of it" });
      if (window.MediaRecorder) this.video = make("button", { type: "button", className: "fit" });
      this.showRecording(false);
      this.boxes = {};
      const boxes = runs.slice(1).map((run, index) => this.box(`run${index + 1}`, run.label, run.colour));
      if (payload.joints.length) boxes.push(this.box("joints", "joints"));
      if (arrows.force.most > 0) boxes.push(this.box("force", `forces up to ${loadText(arrows.force.most, "N")}`));
      if (arrows.moment.most > 0) boxes.push(this.box("moment", `moments up to ${loadText(arrows.moment.most, "N m")}`));
      const first = make("div", { className: "row" }, this.button, this.slider, this.clock);
      const selects = [this.speed, this.point, this.view, ...(runs.length > 1 ? [this.factor] : [])];
      const labelled = selects.map((each) => each.parentElement);
      const second = make("div", { className: "row choices" }, ...labelled, this.fit, ...boxes, ...(this.video ? [this.video] : []));
      this.apart = make("p", { className: "apart" });
      this.apart.hidden = true;
      this.element = make("div", { className: "panel" }, first, second, this.apart);
    }

    box(name, label, colour) {
      const input = make("input", { type: "checkbox", checked: true });
      this.boxes[name] = input;
      const swatch = colour ? [make("span", { className: "swatch", data: { style: `background:${colour}` } })] : [];
      return make("label", { className: "box" }, input, ...swatch, label);
    }

    showPlaying(playing) {
      this.button.textContent = playing ? "❚❚" : "▶";
      this.button.setAttribute("aria-label", playing ? "pause" : "play");
    }

    showRecording(recording) {
      if (!this.video) return;
      this.video.textContent = recording ? "end video" : "video";
      this.video.title = recording ? "stop recording, and save it" : "save what is seen as a video";
    }

    showTime(time, frame) {
      this.slider.value = Math.round(frame);
      this.clock.textContent = `${time.toFixed(this.digits)} s`;
      this.slider.setAttribute("aria-valuetext", this.clock.textContent);
    }

    showApart(texts) {
      this.apart.hidden = texts.length === 0;
      this.apart.textContent = texts.join("; ");
    }
  }

  function closer(one, other, wanted) {
    return Math.abs(Math.log(one / wanted)) < Math.abs(Math.log(other / wanted));
  }

  function choice(label, options, chosen) {
    const select = make("select");
    for (const [value, text] of options) select.append(make("option", { value, textContent: text }));
    select.value = chosen;
    make("label", {}, `${label} `, select);
    return select;
  }

  /** Return the contents of the legend of pressures. */
  function legendOf(scale) {
    const bar = make("span", { className: "bar", data: { style: `background:${gradient}` } });
    const [least, greatest] = [scale.least, scale.greatest].map((each) => `${each.toPrecision(3)}`);
    return ["pressure ", least, bar, `${greatest} bar, `];
  }

  const SIDE = 72; // pixels of the corner
  const INSET = 10;
  const COLOURS = { x: 0xd1453b, y: 0x3a9e4a, z: 0x3b76d1 };
  const RATE = 30; // pictures of a video in a second

  /** The directions of the axes, in a corner of the picture. */
  class Triad {
    constructor() {
      this.scene = new THREE.Scene();
      this.camera = new THREE.PerspectiveCamera(20, 1, 0.1, 20);
      const light = new THREE.HemisphereLight(0xffffff, 0xffffff, 3);
      this.scene.add(light);
      this.axes = Object.entries(COLOURS).map(([name, colour], index) => {
        const axis = new THREE.Vector3().setComponent(index, 1);
        const arrow = new THREE.Group();
        const material = new THREE.MeshLambertMaterial({ color: colour });
        const shaft = new THREE.Mesh(new THREE.CylinderGeometry(0.05, 0.05, 0.75, 12), material);
        const head = new THREE.Mesh(new THREE.ConeGeometry(0.13, 0.3, 16), material);
        shaft.position.y = 0.375;
        head.position.y = 0.85;
        arrow.add(shaft, head);
        arrow.quaternion.setFromUnitVectors(Y, axis);
        this.scene.add(arrow);
        const letter = make("span", { className: "axis", textContent: name, data: { "aria-hidden": "true" } });
        return { axis, letter };
      });
      this.letters = this.axes.map(({ letter }) => letter);
    }

    /** Draw it into the corner at the lower right, as a camera sees the axes. */
    draw(renderer, camera) {
      const size = renderer.getSize(new THREE.Vector2());
      this.camera.quaternion.copy(camera.quaternion);
      this.camera.position.set(0, 0, 7).applyQuaternion(camera.quaternion);
      this.camera.updateMatrixWorld();
      renderer.autoClear = false;
      renderer.clearDepth();
      renderer.setViewport(size.x - SIDE - INSET, INSET, SIDE, SIDE);
      renderer.render(this.scene, this.camera);
      renderer.setViewport(0, 0, size.x, size.y);
      renderer.autoClear = true;
      for (const { axis, letter } of this.axes) {
        const place = axis.clone().multiplyScalar(1.2).project(this.camera);
        letter.style.right = `${INSET + (SIDE * (1 - place.x)) / 2}px`;
        letter.style.bottom = `${INSET + (SIDE * (1 + place.y)) / 2}px`;
      }
    }
  }

  /** Record a canvas until `stop` is called, and save it as a video; `ended` is called then. */
  function recordingOf(canvas, name, ended) {
    const pieces = [];
    const recorder = new MediaRecorder(canvas.captureStream(RATE), { videoBitsPerSecond: 8e6 });
    recorder.ondataavailable = ({ data }) => pieces.push(data);
    recorder.onstop = () => {
      const type = recorder.mimeType.split(";")[0];
      window.mbsfmuDownload.save(new Blob(pieces), `${name}.${type.split("/")[1]}`, type);
      ended();
    };
    recorder.start();
    return recorder;
  }

  Object.assign(MotionParts, { Panel, Triad, legendOf, lengthText, make, recordingOf });
})();
