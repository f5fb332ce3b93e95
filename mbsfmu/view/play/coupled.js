// The FMUs of the systems, coupled by the compiled master, beside the monolithic model in the worker of a page.

"use strict";

(() => {
  const PER_BODY = 12;

  class Coupled {
    /**
     * data: references of the coupled FMU by those of the monolithic one, and the algorithms; modules: compiled code of
     * each of these; heard: called with sentences of the log.
     */
    constructor(data, modules, heard) {
      Object.assign(this, { data, heard, chosen: [], lost: "" });
      this.modules = modules.map((bytes) => new WebAssembly.Module(bytes));
      this.inputs = new Map(data.inputs);
      this.parameters = new Map(data.parameters);
      this.signals = new Map(data.signals);
    }

    /** Run an action; where it fails, the coupled run is lost until the next start, and the sentence says why. */
    attempt(action) {
      if (this.lost) return undefined;
      try {
        return action();
      } catch (error) {
        this.lost = error.message;
        return undefined;
      }
    }

    /** Begin at the start with an algorithm by its index and a communication step in s. Saved states keep their instance. */
    restart(algorithm, step, parameters, inputs) {
      const { name, identity } = this.data.algorithms[algorithm];
      this.lost = "";
      this.attempt(() => {
        this.fmu = new MbsfmuFmu(this.modules[algorithm], name, identity, this.heard);
        this.groups = {
          inputs: this.fmu.group(inputs.map(([reference]) => this.inputs.get(reference))),
          poses: this.fmu.group(this.data.poses),
          made: this.fmu.exports.malloc(8 * PER_BODY * this.data.bodies),
        };
        const given = [...parameters].filter(([reference]) => this.parameters.has(reference));
        const group = this.fmu.group([this.data.step, ...given.map(([reference]) => this.parameters.get(reference))]);
        this.fmu.set(group, [step, ...given.map(([, value]) => value)]);
        this.take(inputs);
        this.fmu.begin();
        this.choose(this.chosen);
      });
    }

    /** Set the inputs, pairs of the monolithic reference and a value. */
    take(inputs) {
      if (!inputs.length || !this.fmu) return;
      this.attempt(() => this.fmu.set(this.groups.inputs, inputs.map(([, value]) => value)));
      this.jump();
    }

    /** Say that values were set: the master extrapolates nothing over them. */
    jump() {
      const [instance] = new Uint32Array(this.fmu.exports.memory.buffer, this.fmu.handle, 1); // first of the component
      this.fmu.exports.mbsfmu_jump(instance);
    }

    tune(reference, value) {
      const own = this.parameters.get(reference);
      if (own === undefined) return;
      this.attempt(() => this.fmu.set(this.fmu.group([own]), [value]));
      this.jump();
    }

    step(time, step) {
      this.attempt(() => this.fmu.step(time, step));
    }

    /** Choose the signals that are read by their monolithic references; those that coupled FMUs lack are left out. */
    choose(references) {
      this.chosen = references;
      const own = references.filter((each) => this.signals.has(each)).map((each) => this.signals.get(each));
      this.count = own.length;
      this.attempt(() => (this.read = this.fmu.group(own)));
    }

    /** Return the chosen signals; null where the run is lost. */
    sample() {
      const values = this.attempt(() => (this.count ? [...this.fmu.get(this.read)] : []));
      return values ?? Array(this.count).fill(null);
    }

    /** Return twelve numbers a body; null where the run is lost. */
    poses() {
      const { poses, made } = this.groups ?? {};
      return this.attempt(() => {
        this.fmu.get(poses);
        this.fmu.exports.mbsfmu_poses(poses.values, made);
        return new Float64Array(this.fmu.exports.memory.buffer, made, PER_BODY * this.data.bodies).slice();
      }) ?? null;
    }

    save() {
      const { fmu, groups, lost } = this;
      return { fmu, groups, lost, state: this.attempt(() => fmu.save()) };
    }

    restore({ fmu, groups, lost, state }) {
      Object.assign(this, { fmu, groups, lost });
      this.attempt(() => fmu.restore(state));
      this.choose(this.chosen);
    }
  }

  globalThis.MbsfmuCoupled = Coupled;
})();
