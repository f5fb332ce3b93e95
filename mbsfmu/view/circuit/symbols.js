// Symbols of hydraulic components after ISO 1219, as paths about their middles, 36 wide and 28 high.
(() => {
  "use strict";

  const circle = (x, y, r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`;
  const box = (x, y, width, height) => `M${x},${y}h${width}v${height}h${-width}z`;
  const ADJUSTED = "M-12,13L12,-11M12,-11l-5,0.5M12,-11l-0.5,5"; // an arrow across what can be adjusted
  const UPWARDS = "M-4,-6L0,-12L4,-6z";
  const THROTTLED = "M-17,0H17M-8,-9Q0,-2 8,-9M-8,9Q0,2 8,9";
  const SEAT = "M-17,0H-5M6,-9L-5,0L6,9M8,0H17";
  const SPRING = "M-9,0l-2,-4l-2,8l-2,-8l-2,8";

  /** By name: `lines` are drawn, `solid` is filled, `dashed` is a pilot line. */
  const SYMBOLS = {
    box: { lines: box(-14, -9, 28, 18) },
    tank: { lines: "M-10,-5V6H10V-5" },
    "pressure-source": { lines: `${circle(0, 0, 12)}M-5,4H5M-5,8H5`, solid: UPWARDS },
    "flow-source": { lines: `${circle(0, 0, 12)}M0,12V-5`, solid: UPWARDS },
    pump: { lines: circle(0, 0, 12), solid: UPWARDS },
    "variable-pump": { lines: circle(0, 0, 12) + ADJUSTED, solid: UPWARDS },
    motor: { lines: `${circle(0, 0, 12)}M12,-2H17M12,2H17`, solid: "M-4,-12L0,-6L4,-12z" },
    cylinder: { lines: `${box(-17, -8, 24, 16)}M-5,-8V8M-2,-8V8M-2,-1.5H17M-2,1.5H17` },
    valve: {
      lines: `${box(-18, -7, 12, 14)}${box(-6, -7, 12, 14)}${box(6, -7, 12, 14)}M-15,7V-7M-9,-7V7M-3,-7v4m-1.5,0h3M3,-7v4m-1.5,0h3M-3,7v-4m-1.5,0h3M3,7v-4m-1.5,0h3M9,7L15,-7M15,7L9,-7`,
    },
    check: { lines: `${SEAT}${circle(3.5, 0, 4.5)}` },
    "pilot-check": { lines: `${SEAT}${circle(3.5, 0, 4.5)}`, dashed: "M-12,14V8L-4,2" },
    shuttle: { lines: `M-17,0H-12M17,0H12M-6,-8L-12,0L-6,8M6,-8L12,0L6,8M0,-8V-14${circle(-4.5, 0, 4.5)}` },
    relief: { lines: `${box(-9, -9, 18, 18)}${SPRING}M4,9V-9M4,-9l-2.5,5M4,-9l2.5,5`, dashed: "M9,5H15V12H4" },
    reducing: { lines: `${box(-9, -9, 18, 18)}${SPRING}M0,9V-9M0,-9l-2.5,5M0,-9l2.5,5`, dashed: "M9,-5H15V-12H0" },
    throttle: { lines: THROTTLED },
    "variable-orifice": { lines: THROTTLED + ADJUSTED },
    restrictor: { lines: "M-17,0H17M-8,-5H8M-8,5H8" },
    accumulator: { lines: "M-7,-5a7,8 0 0,1 14,0V5a7,8 0 0,1 -14,0zM-7,0H7", solid: "M-3,-8H3L0,-3z" },
    hose: { lines: `M-13,-3Q0,14 13,-3${circle(-14, -4, 2)}${circle(14, -4, 2)}` },
    volume: { lines: "M-9,-7h18a7,7 0 0,1 0,14h-18a7,7 0 0,1 0,-14" },
    line: { lines: "M-17,0H17M-12,-4V4M12,-4V4" },
    gauge: { lines: `${circle(0, 0, 11)}M-6,6L6,-6M6,-6l-5,1M6,-6l-1,5` },
    "flow-meter": { lines: `${circle(0, 0, 11)}M-17,0H-11M17,0H11M-7,-3Q0,1 7,-3M-7,3Q0,-1 7,3` },
  };

  window.mbsfmuSymbols = SYMBOLS;
})();
