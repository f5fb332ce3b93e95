// Colours of pressures between the least and the greatest one, from blue by green to yellow.
(() => {
  "use strict";
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
