// What coupling costs, as it runs: algorithm and communication step, and how far signals are from the monolithic ones.

"use strict";

(() => {
  const { number, scaling, withUnit } = window.mbsfmuQuantities;
  const { make } = window.mbsfmuPlayInputs;

  const TOLD = 200; // ms between two readings of the table

  class Coupling {
    /** chosen: called with the index of an algorithm and a step in s. */
    constructor(place, data, chosen) {
      Object.assign(this, { place, data, most: new Map(), toldAt: 0 });
      const changed = () => chosen(Number(this.algorithm.value), Number(this.step.value));
      const select = (name, options) => {
        const made = place.querySelector(name);
        made.append(...options.map(([value, text]) => new Option(text, value)));
        made.addEventListener("change", changed);
        return made;
      };
      this.algorithm = select(".algorithm", data.algorithms.map((each, index) => [index, each.called]));
      this.step = select(".communication", data.steps.map((each) => [each, `${number(1000 * each)} ms`]));
      this.show(data.begin.algorithm, data.begin.step);
      this.rows = place.querySelector("tbody");
      this.sentence = place.querySelector(".lost");
    }

    get label() {
      return this.data.algorithms[Number(this.algorithm.value)].called;
    }

    show(algorithm, step) {
      this.algorithm.value = algorithm;
      this.step.value = step;
    }

    forget() {
      this.most.clear();
    }

    /** Take differences of signals: pairs of values by name, at one time. */
    add(name, one, other) {
      if (one === null || other === null) return;
      this.most.set(name, Math.max(this.most.get(name) ?? 0, Math.abs(other - one)));
    }

    /** Tell of signals how far apart they are; and why the coupled run has ended where it has. */
    tell(now, signals, lost) {
      if (now - this.toldAt < TOLD) return;
      this.toldAt = now;
      this.sentence.hidden = !lost;
      if (lost) this.sentence.textContent = `The coupled run has ended: ${lost}. It begins anew with a reset.`;
      this.rows.replaceChildren(...signals.map((each) => this.row(each)));
    }

    row({ name, unit, magnitude, one, other }) {
      const most = this.most.get(name);
      const { factor, unit: written } = scaling(unit, magnitude); // as the plots have it
      const told = (value) => (value === null || value === undefined ? "–" : withUnit(number(value / factor, 3), written));
      const now = one === null || other === null ? null : other - one;
      const cells = [told(now), told(most)].map((textContent) => make("td", { textContent }));
      return make("tr", {}, make("th", { scope: "row", textContent: name }), ...cells);
    }
  }

  window.mbsfmuPlayCoupling = Coupling;
})();
