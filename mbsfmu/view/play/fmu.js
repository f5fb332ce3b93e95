// An FMU of FMI 2.0 for co-simulation as a WebAssembly module, with the calls that a page makes of it.

"use strict";

(() => {
  const OK = 0,
    WARNING = 1;
  const CO_SIMULATION = 1;
  const REMARK = "logRemark"; // category of what happened in the run, as an end stop that was reached
  const LOGGER = 6; // arguments of a logger in C: five, and the address of those behind the format
  const CALLBACKS = 5; // pointers of the structure

  // A module that imports a function and exports it again: only what a module exports can stand in a table.
  const I32 = 0x7f;
  const PASSED_ON = Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // magic number, version
    ...[1, 4 + LOGGER, 1, 0x60, LOGGER, ...Array(LOGGER).fill(I32), 0], // its type
    ...[2, 7, 1, 1, 0x68, 1, 0x66, 0, 0], // import "h" "f"
    ...[7, 5, 1, 1, 0x66, 0, 0], // export "f"
  ]);

  class Fmu {
    /**
     * Make an instance.
     *
     * module: the compiled module; name, identity: of the instance, and the GUID of its description; heard: called
     * with each sentence of the log and whether it is a remark on the run, as warnings are.
     */
    constructor(module, name, identity, heard) {
      this.exports = new WebAssembly.Instance(module, {}).exports;
      this.exports._initialize();
      this.heard = heard;
      const { __indirect_function_table: table } = this.exports;
      const passedOn = new WebAssembly.Instance(new WebAssembly.Module(PASSED_ON), {
        h: { f: (_, __, status, category, format, rest) => this.log(status, category, format, rest) },
      });
      const place = table.grow(1);
      table.set(place, passedOn.exports.f);
      this.callbacks = this.exports.malloc(4 * CALLBACKS);
      new Uint32Array(this.exports.memory.buffer, this.callbacks, CALLBACKS).fill(0)[0] = place;
      const texts = [name, identity, ""].map((text) => this.text(text));
      this.handle = this.exports.fmi2Instantiate(texts[0], CO_SIMULATION, texts[1], texts[2], this.callbacks, 0, 1);
      if (!this.handle) throw new Error(this.sentence || "the FMU cannot be instantiated");
      this.pointer = this.exports.malloc(8);
    }

    /** Keep the last sentence that says why a call failed. The message is text, or a format whose one argument is. */
    log(status, category, format, rest) {
      let said = this.textAt(format);
      if (said === "%s") said = this.textAt(new Uint32Array(this.exports.memory.buffer, rest, 1)[0]);
      if (status !== OK) this.sentence = said;
      this.heard?.(said, status === WARNING || this.textAt(category) === REMARK);
    }

    text(text) {
      const bytes = new TextEncoder().encode(text);
      const place = this.exports.malloc(bytes.length + 1);
      const there = new Uint8Array(this.exports.memory.buffer, place, bytes.length + 1);
      there.set(bytes);
      there[bytes.length] = 0;
      return place;
    }

    textAt(place) {
      const memory = new Uint8Array(this.exports.memory.buffer);
      return new TextDecoder().decode(memory.subarray(place, memory.indexOf(0, place)));
    }

    /** Call a function; where it fails, throw the sentence that the FMU says about it. */
    call(name, ...given) {
      this.sentence = "";
      const status = this.exports[name](this.handle, ...given);
      if (status > WARNING) throw new Error(this.sentence || `${name} fails with status ${status}`);
    }

    begin(start = 0) {
      this.call("fmi2SetupExperiment", 0, 0, start, 0, 0);
      this.call("fmi2EnterInitializationMode");
      this.call("fmi2ExitInitializationMode");
    }

    step(time, step) {
      this.call("fmi2DoStep", time, step, 1);
    }

    /** Return variables by their references, with room for their values, for `get` and `set`. */
    group(references) {
      const count = references.length;
      const group = { count, at: this.exports.malloc(4 * count + 4), values: this.exports.malloc(8 * count + 8) };
      new Uint32Array(this.exports.memory.buffer, group.at, count).set(references);
      return group;
    }

    /** Return the values of a group; they are overwritten by the next call. */
    get(group) {
      this.call("fmi2GetReal", group.at, group.count, group.values);
      return new Float64Array(this.exports.memory.buffer, group.values, group.count);
    }

    set(group, values) {
      new Float64Array(this.exports.memory.buffer, group.values, group.count).set(values);
      this.call("fmi2SetReal", group.at, group.count, group.values);
    }

    save() {
      const place = () => new Uint32Array(this.exports.memory.buffer, this.pointer, 1);
      place()[0] = 0;
      this.call("fmi2GetFMUstate", this.pointer);
      return place()[0];
    }

    restore(saved) {
      this.call("fmi2SetFMUstate", saved);
    }

    forget(saved) {
      new Uint32Array(this.exports.memory.buffer, this.pointer, 1)[0] = saved;
      this.call("fmi2FreeFMUstate", this.pointer);
    }
  }

  globalThis.MbsfmuFmu = Fmu;
})();
