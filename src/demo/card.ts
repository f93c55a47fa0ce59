// The demo backend's picture: a card of an invented lighthouse, drawn from a seed. The same seed gives the
// same bytes, on which the ETag relies.

const width = 300;
const height = 420;
const horizon = 292;
const axis = 150;
const lampY = 118;

/** The largest seed: what fits in 32 bits. */
export const cardSeedMax = 0xffff_ffff;

type Draw = () => number;
type Sky = {
  readonly bands: readonly string[];
  readonly sea: string;
  readonly foam: string;
  readonly rock: string;
};

const skies: readonly Sky[] = [
  {
    bands: ["#141b3c", "#252a5a", "#43397a", "#7a4a86", "#c0657f", "#f0957a", "#f8c98c"],
    sea: "#1c2850",
    foam: "#8fa3d8",
    rock: "#0d1230",
  },
  {
    bands: ["#08222b", "#0d3540", "#145058", "#22706d", "#4a967f", "#8bbd92", "#d3dfa6"],
    sea: "#0b3440",
    foam: "#7fc0b6",
    rock: "#05181e",
  },
  {
    bands: ["#1d1a26", "#332638", "#573244", "#8a4146", "#c25b42", "#e8894a", "#f7c46c"],
    sea: "#2c2233",
    foam: "#d59a7a",
    rock: "#15101a",
  },
  {
    bands: ["#0c1730", "#122549", "#1b3866", "#2b5486", "#4d7ba5", "#86a9c4", "#c8d7dd"],
    sea: "#10284a",
    foam: "#8fb4d2",
    rock: "#081024",
  },
];
const paints: readonly (readonly [string, string])[] = [
  ["#f4efe2", "#b3362c"],
  ["#f4efe2", "#20242e"],
  ["#f1e4c4", "#1f5673"],
  ["#e9e4da", "#d08a1d"],
  ["#d9d6cf", "#6a6f76"],
];
const nameHeads = [
  "Skerry",
  "Hallow",
  "Gannet",
  "Farrow",
  "Merle",
  "Saint Orran",
  "Tern",
  "Widow",
  "Corrie",
  "Hob",
];
const nameTails = [
  "wick",
  "ness",
  " Head",
  " Rock",
  " Ledge",
  "holm",
  " Stack",
  " Point",
  " Bank",
  "stone",
];
const rhythms = [
  "Fl W 5s",
  "Fl(2) W 10s",
  "Fl(3) R 15s",
  "Oc W 6s",
  "Iso W 4s",
  "Q W",
  "LFl W 10s",
  "Fl(2+1) W 12s",
  "Oc(2) R 8s",
  "Mo(A) W 8s",
];

/** mulberry32, which is small, fast and good enough for scenery. */
function drawFrom(seed: number): Draw {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function pick<T>(draw: Draw, from: readonly T[]): T {
  const chosen = from[Math.floor(draw() * from.length)];
  if (chosen === undefined) throw new RangeError("nothing to pick from");
  return chosen;
}

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** Draws a whole SVG document. `seed` is an integer in [0, cardSeedMax]. */
export function drawCard(seed: number): string {
  const draw = drawFrom(seed);
  const sky = pick(draw, skies);
  const [wall, stripe] = pick(draw, paints);
  const name = pick(draw, nameHeads) + pick(draw, nameTails);
  const rhythm = pick(draw, rhythms);
  const lamp = rhythm.includes(" R ") ? "#ff6a55" : "#fff0bf";
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="Card ${seed}: ${name}, ${rhythm}">
<defs><clipPath id="view"><rect x="12" y="12" width="276" height="348" rx="4"/></clipPath></defs>
<rect width="${width}" height="${height}" rx="10" fill="#f6f0df"/>
<g clip-path="url(#view)">
${drawSky(draw, sky)}
${drawTower(draw, wall, stripe, lamp)}
${drawSea(draw, sky)}
</g>
<rect x="12" y="12" width="276" height="348" rx="4" fill="none" stroke="#26303a" stroke-width="1.5"/>
<g font-family="Palatino Linotype, Palatino, P052, Georgia, serif" text-anchor="middle" fill="#26303a">
<text x="${axis}" y="385" font-size="19" font-style="italic">${name}</text>
<text x="${axis}" y="404" font-size="12" letter-spacing="1">No. ${seed} · ${rhythm}</text>
</g>
</svg>
`;
}

function drawSky(draw: Draw, sky: Sky): string {
  const step = horizon / sky.bands.length;
  const bands = sky.bands.map(
    (fill, index) =>
      `<rect x="0" y="${Math.floor(index * step)}" width="${width}" height="${Math.ceil(step) + 1}" fill="${fill}"/>`,
  );
  const stars = times(34, () => {
    const y = 16 + draw() ** 1.6 * 170;
    return `<circle cx="${(14 + draw() * 272).toFixed(1)}" cy="${y.toFixed(1)}" r="${(0.4 + draw()).toFixed(1)}"/>`;
  });
  const moonX = draw() < 0.5 ? 52 + draw() * 30 : 218 + draw() * 30;
  const moon = `<circle cx="${moonX.toFixed(0)}" cy="${(54 + draw() * 50).toFixed(0)}" r="${(11 + draw() * 9).toFixed(0)}" fill="#fdf3d3" opacity=".9"/>`;
  return [...bands, `<g fill="#fff" opacity=".8">${stars.join("")}</g>`, moon].join("\n");
}

function drawTower(draw: Draw, wall: string, stripe: string, lamp: string): string {
  const foot = 27 + draw() * 12;
  const head = 14 + draw() * 4;
  const top = 136;
  const base = horizon + 22;
  const outline = `M${axis - foot} ${base}Q${axis - head - 2} ${base - 90} ${axis - head} ${top}H${axis + head}Q${axis + head + 2} ${base - 90} ${axis + foot} ${base}Z`;
  const halos = [92, 64, 40, 22]
    .map((radius) => `<circle cx="${axis}" cy="${lampY}" r="${radius}"/>`)
    .join("");
  return [
    `<g fill="${lamp}" fill-opacity=".12">${halos}<path d="M${axis} ${lampY}L-20 ${lampY - 44}V${lampY + 16}ZM${axis} ${lampY}L320 ${lampY - 16}V${lampY + 44}Z"/></g>`,
    `<clipPath id="tower"><path d="${outline}"/></clipPath>`,
    `<g clip-path="url(#tower)"><rect x="90" y="${top}" width="120" height="200" fill="${wall}"/>${drawPattern(draw, stripe, top, base)}<rect x="${axis + 3}" y="${top}" width="80" height="200" opacity=".2"/></g>`,
    `<g fill="#1c222c"><rect x="${axis - head - 6}" y="${top - 5}" width="${2 * head + 12}" height="6" rx="1"/><path d="M${axis - head + 1} ${lampY - 11}Q${axis} ${lampY - 34} ${axis + head - 1} ${lampY - 11}Z"/><circle cx="${axis}" cy="${lampY - 26}" r="3"/></g>`,
    `<rect x="${axis - head + 3}" y="${lampY - 11}" width="${2 * head - 6}" height="25" fill="${lamp}"/>`,
    `<path d="M${axis - 4} ${lampY - 11}v25M${axis + 4} ${lampY - 11}v25" stroke="#1c222c"/>`,
  ].join("\n");
}

function drawPattern(draw: Draw, stripe: string, top: number, base: number): string {
  const tall = base - top;
  const kind = Math.floor(draw() * 4);
  if (kind === 0) return "";
  const count = 2 + Math.floor(draw() * 3);
  const step = tall / (2 * count + 1);
  const slant = kind === 2 ? step * 1.6 : 0;
  if (kind === 3)
    return `<rect x="90" y="${top + tall * 0.4}" width="120" height="${tall * 0.28}" fill="${stripe}"/>`;
  return times(count + (slant > 0 ? 1 : 0), (index) => {
    const y = top + (2 * index + 1) * step - slant / 2;
    return `<path d="M90 ${(y - slant / 2).toFixed(1)}L210 ${(y + slant / 2).toFixed(1)}v${step.toFixed(1)}L90 ${(y - slant / 2 + step).toFixed(1)}Z" fill="${stripe}"/>`;
  }).join("");
}

function drawSea(draw: Draw, sky: Sky): string {
  const crags = times(
    11,
    (index) =>
      `L${(70 + index * 16).toFixed(0)} ${(horizon - 12 + draw() * 9 + (index - 5) ** 2 * 1.1).toFixed(1)}`,
  );
  const waves = times(5, (index) => {
    const y = horizon + 16 + index * 12;
    const start = -draw() * 24;
    return `<path d="M${start.toFixed(1)} ${y}${"q6 -7 12 0t12 0".repeat(14)}" opacity="${(0.35 + index * 0.13).toFixed(2)}"/>`;
  });
  return [
    `<rect x="0" y="${horizon}" width="${width}" height="20" fill="${sky.sea}"/>`,
    `<path d="M40 ${horizon + 40}${crags.join("")}L260 ${horizon + 40}Z" fill="${sky.rock}"/>`,
    `<rect x="0" y="${horizon + 20}" width="${width}" height="80" fill="${sky.sea}"/>`,
    `<g fill="none" stroke="${sky.foam}" stroke-width="1.6">${waves.join("")}</g>`,
  ].join("\n");
}
