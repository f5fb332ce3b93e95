// Parameters as fields, with units and bounds: those that may be tuned count at once, others from the next reset on.

"use strict";

(() => {
  const { written, number } = window.mbsfmuQuantities;
  const { make } = window.mbsfmuPlayInputs;

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
