// The directions of the axes, in a corner of the picture, and videos of what is seen.

"use strict";

(() => {
  const { Y, make } = MotionParts;

  const SIDE = 72; // pixels of the corner
  const INSET = 10;
  const COLOURS = { x: 0xd1453b, y: 0x3a9e4a, z: 0x3b76d1 };
  const RATE = 30; // pictures of a video in a second

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

  Object.assign(MotionParts, { Triad, recordingOf });
})();
