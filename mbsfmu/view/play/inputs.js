// What users set: inputs by sliders, keys and gamepads, whose bindings may be changed, and parameters.

"use strict";

(() => {
  const { written, number } = window.mbsfmuQuantities;

  const KEYS = ["q a", "w s", "e d", "r f", "t g", "y h", "u j", "i k", "o l"].map((pair) => pair.split(" "));
  const SHOWN = 8; // inputs; more are folded away
  const RISE = 0.25; // s from rest to the end of a range, by a key that springs back
  const SWEEP = 2; // s from one end to the other, by a key that stays
  const DEAD = 0.08; // share of a gamepad's axis that counts as rest
  const AXES = 8;

  const make = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  /** One input of the machine. */
  class Input {
    constructor(data, index, changed) {
      Object.assign(this, { data, index, changed, value: data.start, held: 0, axis: "" });
      [this.from, this.to] = [data.from, data.to];
      this.springs = this.from < 0 && this.to > 0;
      this.neutral = this.springs ? 0 : data.start;
      this.keys = [...(KEYS[index] ?? ["", ""])];
      this.makeRow();
      this.show();
    }

    makeRow() {
      const { data } = this;
      const unit = written(data.unit);
      this.slider = make("input", { type: "range", min: this.from, max: this.to, step: (this.to - this.from) / 400 });
      this.slider.setAttribute("aria-label", data.name);
      this.field = make("input", { type: "number", step: "any", title: this.bounds() });
      this.field.setAttribute("aria-label", `${data.name}${unit ? ` in ${unit}` : ""}`);
      this.slider.addEventListener("input", () => this.take(Number(this.slider.value)));
      this.field.addEventListener("change", () => this.take(Number(this.field.value)));
      this.slider.addEventListener("dblclick", () => this.take(this.neutral));
      this.caps = [0, 1].map((side) => this.keyCap(side));
      this.pad = make("select", { title: "axis of a gamepad" }, make("option", { value: "", textContent: "no pad" }));
      for (let axis = 0; axis < AXES; axis += 1) {
        this.pad.append(make("option", { value: `${axis}`, textContent: `pad ${axis + 1}` }));
        this.pad.append(make("option", { value: `-${axis}`, textContent: `pad ${axis + 1} reversed` }));
      }
      this.pad.setAttribute("aria-label", `gamepad axis of ${data.name}`);
      this.pad.value = this.index < 4 ? `${this.index % 2 ? "-" : ""}${this.index}` : "";
      const spring = make("input", { type: "checkbox", checked: this.springs });
      spring.addEventListener("change", () => (this.springs = spring.checked));
      const name = make("span", { className: "name", textContent: data.name, title: data.description });
      const value = make("span", { className: "value" }, this.field, make("span", { className: "soft", textContent: unit }));
      const bindings = make("div", { className: "bindings" }, ...this.caps, this.pad, make("label", {}, spring, "springs back"));
      this.row = make("div", { className: "input" }, make("div", { className: "head" }, name, value), this.slider, bindings);
    }

    bounds() {
      const { least, greatest } = this.data;
      if (least === null && greatest === null) return "";
      return `between ${least ?? "−∞"} and ${greatest ?? "∞"} ${written(this.data.unit)}`;
    }

    keyCap(side) {
      const cap = make("button", { type: "button", className: "key", title: "choose another key" });
      cap.addEventListener("click", () => {
        cap.textContent = "press a key";
        cap.addEventListener("keydown", (event) => this.rebind(event, side), { once: true });
        cap.addEventListener("blur", () => this.showKeys(), { once: true });
      });
      return cap;
    }

    rebind(event, side) {
      if (event.key === "Tab") return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key.length === 1 || event.key.startsWith("Arrow")) this.keys[side] = event.key.toLowerCase();
      if (event.key === "Escape" || event.key === "Delete") this.keys[side] = "";
      this.caps[side].blur();
    }

    showKeys() {
      this.caps.forEach((cap, side) => {
        const key = this.keys[side];
        cap.textContent = `${side ? "−" : "+"} ${key ? key.toUpperCase().replace("ARROW", "") : "none"}`;
        cap.setAttribute("aria-label", `key that ${side ? "lowers" : "raises"} ${this.data.name}: ${key || "none"}`);
      });
    }

    take(value) {
      const { least, greatest } = this.data;
      if (!Number.isFinite(value)) return this.show();
      const bounded = Math.min(Math.max(value, least ?? -Infinity), greatest ?? Infinity);
      if (bounded < this.from) this.slider.min = this.from = bounded;
      if (bounded > this.to) this.slider.max = this.to = bounded;
      if (bounded !== this.value) this.changed(this.index, bounded);
      this.value = bounded;
      return this.show();
    }

    show() {
      this.slider.value = this.value;
      if (document.activeElement !== this.field) this.field.value = Number(this.value.toPrecision(5));
      this.showKeys();
    }

    /** Move as a key that is held, or let go, moves it in some s. */
    follow(passed) {
      const range = this.to - this.from;
      if (this.held) {
        this.moved = true;
        const end = this.held > 0 ? this.to : this.from;
        const most = this.springs ? (passed * Math.abs(end - this.neutral)) / RISE : (passed * range) / SWEEP;
        this.take(towards(this.value, end, most));
      } else if (this.moved && this.springs) {
        this.take(towards(this.value, this.neutral, (passed * range) / 2 / RISE));
        this.moved = this.value !== this.neutral;
      } else this.moved = false;
    }

    /** Follow the axis of a gamepad, once it has been moved. */
    tilt(axes) {
      if (this.pad.value === "") return;
      const axis = Math.abs(Number(this.pad.value));
      const raw = axes[axis];
      if (raw === undefined) return;
      const share = (Math.abs(raw) < DEAD ? 0 : raw) * (this.pad.value.startsWith("-") ? -1 : 1);
      if (share === 0 && !this.tilted) return;
      this.tilted = share !== 0;
      this.take(this.neutral + share * (share > 0 ? this.to - this.neutral : this.neutral - this.from));
    }
  }

  function towards(value, end, most) {
    return Math.abs(end - value) <= most ? end : value + Math.sign(end - value) * most;
  }

  class Inputs {
    constructor(place, data, changed, driven) {
      this.driven = driven;
      this.all = data.map((each, index) => new Input(each, index, changed));
      place.append(...this.all.slice(0, SHOWN).map((each) => each.row));
      if (this.all.length > SHOWN) {
        const more = make("details", {}, make("summary", { textContent: `${this.all.length - SHOWN} more inputs` }));
        more.append(...this.all.slice(SHOWN).map((each) => each.row));
        place.append(more);
      }
      if (!data.length) place.append(make("p", { className: "soft", textContent: "This machine has no free inputs." }));
      document.addEventListener("keydown", (event) => this.press(event, true));
      document.addEventListener("keyup", (event) => this.press(event, false));
      addEventListener("blur", () => this.all.forEach((each) => (each.held = 0)));
    }

    press(event, down) {
      const typing = event.target.matches?.("input:not([type=range]):not([type=checkbox]), select, textarea");
      if (down && (!this.driven() || typing || event.ctrlKey || event.altKey || event.metaKey)) return;
      const key = event.key.toLowerCase();
      for (const each of this.all) {
        const side = each.keys.indexOf(key);
        if (side < 0 || !key) continue;
        const way = side ? -1 : 1;
        if (down) each.held = way;
        else if (each.held === way) each.held = 0;
        if (down) event.preventDefault();
      }
    }

    /** Let keys and gamepads move the inputs, some s after the last time. */
    follow(passed) {
      const pad = navigator.getGamepads?.().find(Boolean);
      for (const each of this.all) {
        each.follow(passed);
        if (pad) each.tilt(pad.axes);
      }
    }

    show(values) {
      this.all.forEach((each, index) => {
        each.value = values[index];
        each.show();
      });
    }
  }

  window.mbsfmuPlayInputs = { Inputs, make };

  /** Parameters as fields, with units and bounds: those that may be tuned count at once, others from the next reset on. */
  class Parameters {
    constructor(place, data, changed) {
      this.data = data;
      this.fields = new Map();
      const rows = data.map((each) => this.row(each, changed));
      place.querySelector("summary").textContent = `Parameters (${data.length})`;
      place.querySelector(".fields").append(...rows);
      const find = place.querySelector(".find");
      find.addEventListener("input", () => {
        rows.forEach((row, index) => (row.hidden = !data[index].name.toLowerCase().includes(find.value.toLowerCase())));
      });
    }

    row(each, changed) {
      const unit = written(each.unit);
      const field = make("input", { type: "number", step: "any", value: each.start });
      const bounds = [
        each.least === null ? "" : `at least ${number(each.least)}`,
        each.greatest === null ? "" : `at most ${number(each.greatest)}`,
      ].filter(Boolean);
      const told = [bounds.join(", "), each.fixed ? "from the next reset on" : ""].filter(Boolean).join("; ");
      const note = make("span", { className: "soft note", textContent: told });
      field.addEventListener("change", () => {
        const value = Number(field.value);
        const low = value < (each.least ?? -Infinity);
        const allowed = field.value !== "" && Number.isFinite(value) && !low && value <= (each.greatest ?? Infinity);
        field.setAttribute("aria-invalid", String(!allowed));
        if (allowed) changed(each, value);
      });
      this.fields.set(each.reference, field);
      const name = make("span", { className: "name", textContent: each.name, title: each.description });
      return make("label", { className: "parameter" }, name, field, make("span", { className: "unit", textContent: unit }), note);
    }

    show(values) {
      for (const [reference, value] of values) this.fields.get(reference).value = value;
    }
  }

  window.mbsfmuPlayParameters = Parameters;
})();
