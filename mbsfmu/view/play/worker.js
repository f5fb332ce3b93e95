// The run, beside the page: makes steps, takes what hands do at communication points, and keeps a record of it.

"use strict";

(() => {
  const PER_BODY = 12;

  /** The FMUs of the systems, coupled by the compiled master, beside the monolithic model. */
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

  const BUSY = 20; // ms of steps before the page is heard again
  const BEHIND = 100; // ms of wall-clock time by which a run may be behind before that is given up
  const SAMPLE = 0.01; // s between values for plots
  const PICTURE = 15; // ms between two messages with poses

  let data, module, fmu, groups, step;
  let coupled = null,
    algorithm = 0; // of the coupled FMUs beside the monolithic model
  let steps = 0; // since the start: time is their number times their length
  let running = false,
    failed = false,
    speed = 1,
    begin = null; // of the present stretch: wall-clock time in ms and step
  let inputs = [],
    changed = false,
    parameters = new Map(), // values that were given, by reference
    begun = new Map(); // those of them that the run began with
  let recorded = [],
    tuned = []; // rows of time and inputs; changes of parameters during the run
  let samples = [],
    sampled = -Infinity,
    pictured = 0;
  const saved = new Map();

  const now = () => performance.now();
  const time = () => steps * step;

  /** Return what hands sentences of an FMU's log to the page, with the name of the run that it is in. */
  const say = (run) => (sentence, remark) => postMessage({ kind: "log", sentence, remark, run });

  function start(given, bytes, modules) {
    data = given;
    step = data.step;
    if (data.coupled) {
      coupled = new Coupled(data.coupled, modules, say("coupled"));
      ({ algorithm, step } = data.coupled.begin);
    }
    module = new WebAssembly.Module(bytes);
    inputs = data.inputs.map((each) => each.start);
    for (const each of data.parameters) parameters.set(each.reference, each.start);
    make();
    restart();
  }

  function make() {
    fmu = new MbsfmuFmu(module, data.name, data.identity, say(""));
    groups = {
      inputs: fmu.group(data.inputs.map((each) => each.reference)),
      parameters: fmu.group(data.parameters.map((each) => each.reference)),
      poses: fmu.group(data.poses),
      pressures: fmu.group(data.nodes.map((each) => each.reference)),
      circuit: fmu.group(data.circuit),
      signals: groups?.signals ? fmu.group(groups.chosen) : fmu.group([]),
      chosen: groups?.chosen ?? [],
      made: fmu.exports.malloc(8 * PER_BODY * data.bodies),
    };
  }

  /** Begin at the start, with the values that parameters have now. */
  function restart() {
    steps = 0;
    tuned = [];
    begin = null;
    failed = false;
    begun = new Map(parameters);
    attempt(initialize);
    if (!failed) postMessage({ kind: "restarted" });
    picture(true);
  }

  /** Return times and inputs as recorded; at the start the present inputs, with which the run will begin. */
  const rows = () => (steps ? recorded : [[0, ...inputs]]);

  const given = () => data.inputs.map((each, index) => [each.reference, inputs[index]]);

  /** Initialize the FMUs at the start, with the present inputs. */
  function initialize() {
    fmu.call("fmi2Reset");
    if (groups.parameters.count) fmu.set(groups.parameters, data.parameters.map((each) => begun.get(each.reference)));
    if (inputs.length) fmu.set(groups.inputs, inputs);
    fmu.begin();
    coupled?.restart(algorithm, step, begun, given());
    recorded = [[0, ...inputs]];
    changed = false;
    samples = [];
    sample();
  }

  /** Take what was changed since the last step; before the first one by initializing anew, as a replay does. */
  function takeChanges() {
    if (!changed) return;
    if (!steps) return initialize();
    if (inputs.length) fmu.set(groups.inputs, inputs);
    coupled?.take(given());
    recorded.push([time(), ...inputs]);
    changed = false;
  }

  function attempt(action) {
    try {
      action();
    } catch (error) {
      failed = true;
      running = false;
      postMessage({ kind: "fault", sentence: error.message, time: time() });
    }
  }

  function advance() {
    attempt(() => {
      takeChanges();
      fmu.step(time(), step);
      coupled?.step(time(), step);
      steps += 1;
    });
    if (!failed && time() - sampled > SAMPLE - step / 2) sample();
  }

  function sample() {
    if (failed || !groups.signals.count) return;
    attempt(() => samples.push([time(), ...fmu.get(groups.signals), ...(coupled?.sample() ?? [])]));
    sampled = time();
  }

  function picture(always) {
    if (failed || (!always && now() - pictured < PICTURE)) return;
    if (always && time() > sampled) sample();
    attempt(() => {
      const { poses, pressures, circuit, made } = groups;
      fmu.get(poses);
      fmu.exports.mbsfmu_poses(poses.values, made);
      const placed = new Float64Array(fmu.exports.memory.buffer, made, PER_BODY * data.bodies).slice();
      const bars = pressures.count ? Array.from(fmu.get(pressures), (each) => each / 1e5) : [];
      const oil = circuit.count ? Array.from(fmu.get(circuit)) : [];
      const other = coupled && { poses: coupled.poses(), lost: coupled.lost };
      const told = { time: time(), steps, poses: placed, pressures: bars, circuit: oil, samples, inputs: [...inputs] };
      postMessage({ kind: "picture", ...told, coupled: other });
      samples = [];
      pictured = now();
    });
  }

  function tick() {
    if (!running) return;
    const entered = now();
    begin ??= { at: entered, steps };
    const due = Number.isFinite(speed) ? begin.steps + ((entered - begin.at) / 1000) * (speed / step) : Infinity;
    while (running && steps + 1 <= due && now() - entered < BUSY) advance();
    // A machine that cannot keep up does not run after lost time.
    if (steps < due - (BEHIND / 1000) * (speed / step)) begin = null;
    picture(false);
    if (running) setTimeout(tick, 0);
  }

  const actions = {
    start: (message) => attempt(() => start(message.given, message.bytes, message.modules)),
    run(message) {
      speed = message.speed;
      begin = null;
      if (failed || running) return;
      running = true;
      tick();
    },
    pause() {
      running = false;
      picture(true);
    },
    step() {
      running = false;
      if (!failed) advance();
      picture(true);
    },
    reset: restart,
    couple(message) {
      running = false;
      algorithm = message.algorithm;
      step = message.step;
      restart();
    },
    input({ index, value }) {
      if (inputs[index] === value) return;
      inputs[index] = value;
      changed = true;
    },
    parameter({ reference, value, fixed }) {
      const before = parameters.get(reference);
      parameters.set(reference, value);
      if (fixed || failed) return;
      try {
        const one = fmu.group([reference]);
        fmu.set(one, [value]);
        coupled?.tune(reference, value);
        if (steps) tuned.push({ time: time(), reference, value });
        else {
          begun.set(reference, value);
          changed = true;
        }
      } catch (error) {
        parameters.set(reference, before);
        postMessage({ kind: "refused", reference, value: before, sentence: error.message });
      }
    },
    signals({ references }) {
      attempt(() => {
        groups.chosen = references;
        groups.signals = fmu.group(references);
        coupled?.choose(references);
        samples = [];
        if (!failed) sample();
      });
    },
    save({ id }) {
      if (failed) return;
      attempt(() => {
        const kept = { steps, inputs: [...inputs], recorded: recorded.slice(), tuned: tuned.slice() };
        const states = { state: fmu.save(), coupled: coupled?.save(), algorithm, step };
        saved.set(id, { ...kept, changed, parameters: new Map(parameters), begun: new Map(begun), ...states });
        postMessage({ kind: "saved", id, time: time() });
      });
    },
    restore({ id }) {
      failed = false;
      attempt(() => {
        const kept = saved.get(id);
        fmu.restore(kept.state);
        coupled?.restore(kept.coupled);
        [algorithm, step] = [kept.algorithm, kept.step];
        steps = kept.steps;
        inputs = [...kept.inputs];
        [recorded, tuned, changed] = [kept.recorded.slice(), kept.tuned.slice(), kept.changed];
        [parameters, begun] = [new Map(kept.parameters), new Map(kept.begun)];
        samples = [];
        sampled = -Infinity;
        begin = null;
        const told = { inputs: [...inputs], parameters: [...parameters], algorithm, step };
        postMessage({ kind: "restored", time: time(), ...told });
      });
      sample();
      picture(true);
    },
    record({ for: purpose }) {
      postMessage({ kind: "record", for: purpose, time: time(), rows: rows(), tuned, begun: [...begun] });
    },
  };

  onmessage = ({ data: message }) => actions[message.do](message);
})();
