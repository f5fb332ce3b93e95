// The axis that panels share: what of it is shown, and where on it the pointer is.
(() => {
  "use strict";
  const SMALLEST = 1e-7,
    MARGIN = 0.04;

  class Group {
    constructor(axis) {
      this.panels = [];
      this.unit = axis.unit;
      this.pointed = []; // who hears where the pointer is
      this.following = []; // who hears that place, and that of what else of the page is at one
      this.forward = axis.logarithmic ? Math.log10 : (value) => value;
      this.backward = axis.logarithmic ? (value) => 10 ** value : (value) => value;
    }

    add(panel) {
      this.panels.push(panel);
      const ends = panel.curves.flatMap((curve) => [curve.x[0], curve.x[curve.x.length - 1]]);
      const before = this.ends ?? [Infinity, -Infinity];
      this.ends = [Math.min(before[0], ...ends), Math.max(before[1], ...ends)];
      this.whole = this.ends.map(this.forward);
      const share = panel.curves.some((curve) => ["marked", "points"].includes(curve.kind)) ? MARGIN : 0;
      const margin = this.whole[1] > this.whole[0] ? share * (this.whole[1] - this.whole[0]) : 0.5;
      this.whole = [this.whole[0] - margin, this.whole[1] + margin];
      this.range = this.zoomed ? this.range : this.whole;
    }

    remove(panel) {
      panel.plot?.destroy();
      this.panels = this.panels.filter((each) => each !== panel);
    }

    get shown() {
      return this.range.map(this.backward);
    }

    show(low, high) {
      const whole = this.whole[1] - this.whole[0];
      const width = Math.min(Math.max(high - low, SMALLEST * whole), whole);
      const begin = Math.min(Math.max(0.5 * (low + high - width), this.whole[0]), this.whole[1] - width);
      this.range = [begin, begin + width];
      this.zoomed = width < whole;
      const [min, max] = this.shown;
      for (const panel of this.panels) panel.plot?.setScale("x", { min, max });
      queueMicrotask(() => this.pointAgain()); // when the new scale holds
    }

    // What is shown has moved: the pointer is at another place of it, the keyboard's place is elsewhere in the field.
    pointAgain() {
      if (this.place === undefined || this.place === null) return;
      const place = this.panels.find((panel) => panel.hovered)?.placeOfCursor ?? this.place;
      this.place = undefined;
      this.point(place);
    }

    zoom(factor, share = 0.5) {
      const [low, high] = this.range,
        place = low + share * (high - low);
      this.show(place - (place - low) * factor, place + (high - place) * factor);
    }

    move(share) {
      const [low, high] = this.range,
        by = share * (high - low);
      const allowed = Math.min(Math.max(by, this.whole[0] - low), this.whole[1] - high);
      this.show(low + allowed, high + allowed);
    }

    // The pointer is at a place of the axis in one panel, or nowhere: all of them tell their values there.
    point(place) {
      if (place === this.place) return;
      this.follow(place);
      for (const hear of this.pointed) hear(place);
    }

    // Something else of the page is at a place.
    follow(place) {
      this.place = place;
      for (const panel of this.panels) panel.tell(place);
      for (const hear of this.following) hear(place);
    }

    do(what) {
      if (what === "in") this.zoom(0.5);
      if (what === "out") this.zoom(2);
      if (what === "left") this.move(-0.25);
      if (what === "right") this.move(0.25);
      if (what === "whole") this.show(...this.whole);
    }
  }

  window.mbsfmuPlotGroup = Group;
})();
