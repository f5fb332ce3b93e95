// What users should know of the run: numbers that are hardly meant, and what happened, with its time.

"use strict";

(() => {
  const { make } = window.mbsfmuPlayInputs;

  const TIME = / t = (\S+) s/; // in a sentence

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

  window.mbsfmuPlayRemarks = Remarks;
})();
