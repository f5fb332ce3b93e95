// Numbers, units and colours of pressures as readers want them. Part of every page that shows values.
(() => {
  "use strict";
  const PREFIXES = [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
    [1, ""],
    [1e-3, "m"],
    [1e-6, "µ"],
  ];
  // Units that take a prefix by writing it before them: in mm³ it would count three times.
  const PREFIXED = new Set(["A", "J", "N", "N.m", "Pa", "V", "W", "m", "m/s", "m/s2", "s"]);
  const POWERS = { 2: "²", 3: "³", 4: "⁴" };

  // The unit as it is written: m3/s as m³/s, N.m as N·m, nothing for pure numbers.
  const written = (unit) =>
    unit === "1"
      ? ""
      : unit.replace(/([a-zA-Z])([234])(?![0-9])/g, (_, base, power) => base + POWERS[power]).replace(/\./g, "·");

  // Units of drawings and catalogues: how much one is in SI. Where a magnitude is far below one, SI says more.
  const DISPLAYED = {
    Pa: [1e5, "bar"],
    "m3/s": [1 / 6e4, "L/min"],
    m3: [1e-3, "L"],
    rad: [Math.PI / 180, "°"],
    "rad/s": [Math.PI / 180, "°/s"],
    m: [1e-3, "mm"],
    N: [1e3, "kN"],
    W: [1e3, "kW"],
  };
  const LEAST = 0.01;
  let si = false;

  // A factor and a unit for a magnitude: one of catalogues, or SI with a prefix by which it is between 1 and 1000.
  function scaling(unit, magnitude) {
    const [size, name] = DISPLAYED[unit] ?? [];
    if (!si && name && !(magnitude < LEAST * size)) return { factor: size, unit: name };
    const found = PREFIXES.find(([factor]) => magnitude >= factor);
    if (!PREFIXED.has(unit) || !found) return { factor: 1, unit: written(unit) };
    return { factor: found[0], unit: found[1] + written(unit) };
  }

  function number(value, digits = 5) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const magnitude = Math.abs(value);
    const plain = value === 0 || (magnitude >= 1e-4 && magnitude < 1e6);
    const text = plain ? String(Number(value.toPrecision(digits))) : Number(value.toPrecision(digits)).toExponential();
    return text.replace("e+", "e").replace(/-/g, "−");
  }

  const withUnit = (text, unit) => (unit ? `${text}\u00a0${unit}` : text);
  const titled = (label, unit) => (unit ? `${label} [${unit}]`.trim() : label);

  /** Show SI units, or those of catalogues; what shows values hears it as the event `units` of the document. */
  function choose(wanted) {
    si = wanted;
    document.dispatchEvent(new CustomEvent("units"));
  }

  // Every switch of a page shows what is chosen, whichever of them was pressed.
  document.addEventListener("click", (event) => {
    const pressed = event.target.closest?.("[data-do=units]");
    if (!pressed) return;
    choose(!si);
    for (const each of document.querySelectorAll("[data-do=units]")) each.setAttribute("aria-pressed", String(si));
  });

  window.mbsfmuQuantities = { DISPLAYED, written, scaling, number, withUnit, titled, choose };

  // Colours of pressures between the least and the greatest one, from blue by green to yellow.
  const STOPS = [
    [0x44, 0x3a, 0x83],
    [0x31, 0x68, 0x8e],
    [0x21, 0x91, 0x8c],
    [0x35, 0xb7, 0x79],
    [0xfd, 0xe7, 0x25],
  ];

  const style = (colour) => `rgb(${colour.map(Math.round).join(", ")})`;

  /** The colour of a share of the scale, as styles have it. */
  function colourOf(share) {
    const place = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
    const below = Math.min(Math.floor(place), STOPS.length - 2);
    return style(STOPS[below].map((each, index) => each + (place - below) * (STOPS[below + 1][index] - each)));
  }

  const gradient = `linear-gradient(to right,${STOPS.map(style).join(",")})`;

  window.mbsfmuPressureColours = { colourOf, gradient };
})();
