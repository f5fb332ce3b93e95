// The page: what is pressed goes to the run in its worker, and what that computes is shown.

"use strict";

(() => {
  const { save } = window.mbsfmuDownload;
  const { number } = window.mbsfmuQuantities;
  const { Inputs, make } = window.mbsfmuPlayInputs;

  const SPEEDS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5];
  const FAST = "Infinity";
  const RATE = 500; // ms over which the speed is measured
  const PLOTS = 50; // ms between two drawings of the plots
  const TOLD = 200; // ms between two messages to a notebook around the page
  const TIME = / t = (\S+) s/; // in a sentence

  /** What users should know of the run: numbers that are hardly meant, and what happened, with its time. */
  class Remarks {
    /** known: sentences on the model, which stay. */
    constructor(place, name, known) {
      Object.assign(this, { place, name, list: place.querySelector("ul"), happened: new Map() });
      this.known = known.map((sentence) => make("li", { textContent: sentence }));
      this.show();
    }

    /** Take a sentence; what happens again is told with its last time, and how often. */
    add(sentence, run) {
      const own = sentence.startsWith(`${this.name}: `) ? sentence.slice(this.name.length + 2) : sentence;
      const said = run ? `${run}: ${own}` : own;
      const time = Number(TIME.exec(said)?.[1]);
      const kind = said.replace(TIME, "");
      const times = this.happened.get(kind)?.times ?? [];
      this.happened.delete(kind); // the last comes last
      this.happened.set(kind, { said, times: [...times, time] });
      this.show();
    }

    /** Forget what happened after a time in s. */
    cut(end) {
      for (const [kind, { said, times }] of this.happened) {
        const left = times.filter((time) => time <= end);
        if (left.length) this.happened.set(kind, { said: said.replace(TIME, ` t = ${left.at(-1)} s`), times: left });
        else this.happened.delete(kind);
      }
      this.show();
    }

    show() {
      const items = [...this.happened.values()].reverse().map(({ said, times }) =>
        make("li", { textContent: times.length > 1 ? `${said} (${times.length} times)` : said }),
      );
      this.list.replaceChildren(...items, ...this.known);
      this.place.hidden = !this.list.children.length;
    }
  }

  /** The run behind a live page: speaks with the server as a player speaks with its worker. */
  class RemoteRun {
    constructor() {
      const { host, search } = location;
      this.socket = new WebSocket(`ws://${host}/run${search}`);
      this.opened = new Promise((done) => this.socket.addEventListener("open", done));
      this.socket.addEventListener("message", ({ data }) => {
        const message = JSON.parse(data);
        if (message.poses) message.poses = Float64Array.from(message.poses);
        this.onmessage({ data: message });
      });
      this.socket.addEventListener("close", ({ reason }) => {
        const sentence = reason || "the run behind this page has ended";
        this.onmessage({ data: { kind: "closed", sentence } });
      });
    }

    async postMessage(message) {
      await this.opened;
      if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
    }
  }

  class Player {
    constructor(root, data) {
      Object.assign(this, { root, data, running: false, states: 0, measured: null, latest: null, time: 0 });
      this.constants = Object.entries(data.pressures).filter(([, source]) => typeof source === "number");
      this.nodes = Object.entries(data.pressures).filter(([, source]) => typeof source !== "number");
      this.circuits = [...root.querySelectorAll(".mbsfmu-circuit")].map(({ circuit }) => circuit);
      this.scene = () => root.querySelector(".mbsfmu-scene").scene;
      this.worker = data.remote ? new RemoteRun() : workerOf(data.worker);
      this.worker.onmessage = ({ data: message }) => this.heard[message.kind](message);
      this.inputs = new Inputs(root.querySelector(".inputs"), data.inputs, (index, value) => this.tell("input", { index, value }), () => driven(root));
      this.parameters = new window.mbsfmuPlayParameters(root.querySelector(".parameters"), data.parameters, (each, value) =>
        this.tune(each, value),
      );
      if (data.coupled) {
        const place = root.querySelector(".coupling");
        this.coupling = new window.mbsfmuPlayCoupling(place, data.coupled, (algorithm, step) => this.couple(algorithm, step));
      }
      this.remarks = new Remarks(root.querySelector(".remarks"), data.name, data.remarks);
      this.makeSpeeds();
      this.listen();
      this.begin();
    }

    async begin() {
      if (!this.data.remote) await this.beginHere();
      const chosen = (references) => this.tell("signals", { references });
      this.signals = new window.mbsfmuPlaySignals(this.root.querySelector(".signals"), this.data, chosen, this.coupling);
      if (this.data.remote) this.tell("start");
      this.frame(performance.now());
    }

    /** Hand the compiled model to the worker. */
    async beginHere() {
      const { name, identity, step, inputs, parameters, poses, bodies, circuit, coupled } = this.data;
      const bytes = await unpacked(this.data.module);
      const modules = await Promise.all((coupled?.algorithms ?? []).map((each) => unpacked(each.module)));
      const nodes = this.nodes.map(([, source]) => source);
      const others = coupled && { ...coupled, algorithms: coupled.algorithms.map(({ module: _, ...rest }) => rest) };
      const given = { name, identity, step, inputs, parameters, poses, bodies, circuit, nodes, coupled: others };
      this.tell("start", { given, bytes, modules });
    }

    tell(what, more = {}) {
      this.worker.postMessage({ do: what, ...more });
    }

    makeSpeeds() {
      this.speed = this.root.querySelector(".speed");
      for (const each of SPEEDS) this.speed.append(new Option(each === 1 ? "real time" : `${each} ×`, each));
      this.speed.append(new Option("as fast as it goes", FAST));
      this.speed.value = 1;
      this.speed.addEventListener("change", () => this.running && this.run());
    }

    listen() {
      this.root.addEventListener("click", (event) => {
        const what = event.target.closest("button")?.dataset.do;
        this.actions[what]?.();
      });
      window.addEventListener("message", ({ source, data }) => {
        if (window.parent !== window && source === window.parent && data?.mbsfmu) this.askedByNotebook(data);
      });
      document.addEventListener("keydown", (event) => {
        const own = event.target.matches?.("input:not([type=range]), select, button, summary, textarea");
        if (event.key !== " " || own || !driven(this.root)) return;
        event.preventDefault();
        this.actions.toggle();
      });
    }

    /** Do what a notebook around the page asks for: inputs by their names, signals to plot. */
    askedByNotebook({ mbsfmu, value }) {
      if (mbsfmu === "inputs") {
        for (const each of this.inputs.all) if (each.data.name in value) each.take(value[each.data.name]);
      }
      if (mbsfmu === "signals") this.signals?.choose(value.filter((name) => this.signals.data.has(name)));
    }

    /** Tell a notebook around the page where the run is. */
    tellNotebook(now, time) {
      if (window.parent === window || now - (this.toldAt ?? 0) < TOLD) return;
      this.toldAt = now;
      const values = Object.fromEntries([...this.signals.histories].map(([name, { y }]) => [name, y[y.length - 1] ?? null]));
      const inputs = Object.fromEntries(this.inputs.all.map((each) => [each.data.name, each.value]));
      window.parent.postMessage({ mbsfmu: "state", time, values, inputs }, "*");
    }

    run() {
      this.setRunning(true);
      this.tell("run", { speed: Number(this.speed.value) });
    }

    setRunning(running) {
      if (this.failed && running) return;
      this.running = running;
      this.measured = null;
      this.root.dataset.state = this.failed ? "failed" : running ? "running" : "paused";
      const go = this.root.querySelector(".go");
      go.textContent = running ? "❚❚ pause" : "▶ run";
      go.setAttribute("aria-label", running ? "pause" : "run");
      go.setAttribute("aria-pressed", String(running));
      if (!running) this.say(this.failed ? "ended" : "paused");
    }

    get actions() {
      return {
        toggle: () => (this.running ? this.actions.pause() : this.run()),
        pause: () => {
          this.setRunning(false);
          this.tell("pause");
          this.tell("record", { for: "words" });
        },
        step: () => {
          this.setRunning(false);
          this.tell("step");
          this.tell("record", { for: "words" });
        },
        reset: () => {
          this.tell("pause");
          this.setRunning(false);
          this.tell("reset");
        },
        save: () => this.tell("save", { id: (this.states += 1) }),
        csv: () => this.tell("record", { for: "csv" }),
      };
    }

    /** Begin anew with another algorithm, or communication step in s. */
    couple(algorithm, step) {
      this.setRunning(false);
      this.tell("couple", { algorithm, step });
    }

    tune(each, value) {
      this.tell("parameter", { reference: each.reference, value, fixed: each.fixed });
      this.tell("record", { for: "words" });
    }

    say(text) {
      const status = this.root.querySelector(".status");
      if (status.textContent !== text) status.textContent = text;
    }

    // -- what the worker says -----------------------------------------------------------------------------------

    get heard() {
      return {
        picture: (message) => {
          this.signals?.add(message.samples);
          this.latest = message;
          this.measure(message);
        },
        restarted: () => {
          this.failed = false;
          this.root.querySelector(".fault").hidden = true;
          this.signals?.cut(-1);
          this.remarks.cut(-Infinity);
          this.scene()?.jump();
          this.coupling?.forget();
          this.setRunning(false);
          this.say("at the start");
          this.tell("record", { for: "words" });
        },
        fault: ({ sentence, time }) => {
          this.failed = true;
          this.setRunning(false);
          const place = this.root.querySelector(".fault");
          place.firstElementChild.textContent = `At ${number(time)} s: ${sentence}`;
          place.hidden = false;
        },
        log: ({ sentence, remark, run }) => {
          this.logged = sentence;
          if (remark) this.remarks.add(sentence, run);
          else if (this.data.remote) this.say(sentence);
        },
        closed: ({ sentence }) => {
          this.failed = true;
          this.setRunning(false);
          this.say(sentence);
        },
        refused: ({ reference, value, sentence }) => {
          this.parameters.show([[reference, value]]);
          this.say(sentence);
        },
        saved: ({ id, time }) => {
          const button = make("button", { type: "button", textContent: `go back to ${time.toFixed(2)} s` });
          button.addEventListener("click", () => this.tell("restore", { id }));
          this.root.querySelector(".states").append(" ", button);
        },
        restored: ({ time, inputs, parameters, algorithm, step }) => {
          this.failed = false;
          this.root.querySelector(".fault").hidden = true;
          this.signals.cut(time);
          this.remarks.cut(time);
          this.scene()?.jump();
          this.coupling?.forget();
          this.coupling?.show(algorithm, step);
          this.inputs.show(inputs);
          this.parameters.show(parameters);
          this.setRunning(this.running);
          this.tell("record", { for: "words" });
        },
        record: (message) => this.recorded(message),
      };
    }

    /** Say what repeats the run, and save its inputs as CSV where that is asked for. */
    recorded({ for: purpose, time, rows, tuned, begun }) {
      const { file, replay, step } = this.data;
      const values = new Map(begun);
      const set = this.data.parameters
        .map((each) => [each, values.get(each.reference) ?? each.start])
        .filter(([each, value]) => value !== each.start);
      const stop = Number(time.toPrecision(12));
      const call = this.called(replay, set.map(([each, value]) => [each.name, value]), { stop: stop || step });
      const first = tuned[0];
      const name = first && this.data.parameters.find((each) => each.reference === first.reference).name;
      const limit = first ? ` It does so up to ${number(first.time)} s, when ${name} was changed.` : "";
      const coupled = this.coupling ? this.coupledCalls(set, stop) : [];
      this.root
        .querySelector(".recorded")
        .replaceChildren("This repeats the run: ", make("code", { textContent: call }), limit, ...coupled);
      if (purpose !== "csv") return;
      const head = ["time", ...this.data.inputs.map((each) => each.full ?? each.name)];
      save(`${[head, ...rows].map((row) => row.join(",")).join("\n")}\n`, file, "text/csv");
    }

    /** Return what says how the coupled run is repeated, with parameters that were set before it. */
    coupledCalls(set, stop) {
      const { replay } = this.data.coupled;
      const algorithm = replay.algorithms[Number(this.coupling.algorithm.value)];
      const step = Number(this.coupling.step.value);
      const values = set.map(([each, value]) => [each.full, value]);
      const call = this.called(replay, values, { algorithm, step, stop: stop || step });
      return [" The coupled one: ", make("code", { textContent: call })];
    }

    /** Return a call with its blanks filled; `set` are pairs of name and value, in place of those given before. */
    called({ call, inputs, values, value, given }, set, blanks) {
      const fill = (text, words) => text.replace(/\{(\w+)\}/g, (blank, word) => words[word] ?? blank);
      const changed = set.map(([name, number]) => [name, fill(value, { name, value: number })]);
      const each = Object.values({ ...given, ...Object.fromEntries(changed) });
      const [before, between, behind] = values;
      const filled = { values: each.length ? before + each.join(between) + behind : "", inputs: this.data.inputs.length ? inputs : "" };
      return fill(call, { ...blanks, ...filled });
    }

    measure({ time }) {
      const now = performance.now();
      if (!this.running) return;
      this.measured ??= { now, time };
      if (now - this.measured.now < RATE) return;
      const rate = (time - this.measured.time) / ((now - this.measured.now) / 1000);
      this.rate = rate;
      this.measured = { now, time };
      this.say(`running at ${number(rate, 2)} × real time`);
    }

    // -- drawing ------------------------------------------------------------------------------------------------

    frame(now) {
      const passed = Math.min((now - (this.before ?? now)) / 1000, 0.1);
      this.before = now;
      this.inputs.follow(passed);
      if (this.latest) this.show(this.latest, now);
      requestAnimationFrame((next) => this.frame(next));
    }

    show({ time, poses, pressures, circuit, coupled }, now) {
      const { latest } = this;
      this.time = time;
      const bars = Object.fromEntries([
        ...this.constants.map(([name, value]) => [name, value / 1e5]),
        ...this.nodes.map(([name], index) => [name, pressures[index]]),
      ]);
      if (latest !== this.drawn) {
        this.scene()?.show(time, coupled ? [poses, coupled.poses] : [poses], bars);
        for (const each of this.circuits) each.show(({ index }) => circuit[index]);
        this.root.querySelector(".clock").textContent = `${time.toFixed(2)} s`;
        this.drawn = latest;
        this.pictures = (this.pictures ?? 0) + 1;
      }
      if (this.signals) this.tellNotebook(now, time);
      if (this.signals && coupled) this.coupling.tell(now, this.signals.apart(), coupled.lost);
      if (this.plotted === latest || now - (this.plottedAt ?? 0) < PLOTS) return;
      this.signals.scroll(time);
      [this.plotted, this.plottedAt] = [latest, now];
    }
  }

  /** Return the bytes of a module. */
  async function unpacked(text) {
    const packed = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }

  const workerOf = (code) => new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));

  /** Whether keys are for this machine: it has the page to itself, or the pointer or the focus is there. */
  const driven = (root) => "alone" in root.dataset || root.matches(":hover, :focus-within");

  function begin() {
    for (const root of document.querySelectorAll(".mbsfmu-play:not([data-begun])")) {
      root.dataset.begun = "";
      root.player = new Player(root, JSON.parse(root.querySelector("script.data").textContent));
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
