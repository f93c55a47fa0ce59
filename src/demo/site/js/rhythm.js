// The grammar of lights: from what a chart prints ("Fl(2) W 10s") to when the lamp shines, and to a sentence.

const letters = {
  A: ".-", B: "-...", C: "-.-.", D: "-..", E: ".", F: "..-.", G: "--.", H: "....", I: "..", J: ".---", K: "-.-", L: ".-..", M: "--",
  N: "-.", O: "---", P: ".--.", Q: "--.-", R: ".-.", S: "...", T: "-", U: "..-", V: "...-", W: ".--", X: "-..-", Y: "-.--", Z: "--..",
};
const classes = {
  f: { symbol: "F", period: 1 },
  fl: { symbol: "Fl", period: 5, on: 0.6, gap: 1.4, thing: "flash", things: "flashes" },
  lfl: { symbol: "LFl", period: 10, on: 2, gap: 1.5, thing: "long flash", things: "long flashes" },
  q: { symbol: "Q", period: 1, on: 0.4, gap: 0.6, thing: "quick flash", things: "quick flashes" },
  oc: { symbol: "Oc", period: 6, on: 1, gap: 1, thing: "eclipse", things: "eclipses" },
  iso: { symbol: "Iso", period: 4 },
  mo: { symbol: "Mo", period: 8 },
};
const colourNames = { W: "white", R: "red", G: "green", Y: "yellow" };
const numbers = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
const periodMaxS = 60;
/** Below the three a second that can harm people who are sensitive to flashes. */
const flashesPerSecondMax = 2.5;

/** {period, spans, colours, name, sentence}: the lamp is lit within the spans [from, to) of every period, all in seconds. {problem} when it is no light. */
export function parseRhythm(text) {
  const match = /^\s*([a-z]+)\s*(?:\(\s*([0-9a-z][0-9+\s]*)\s*\))?\s*([wrgy]*)\s*(?:(\d+(?:\.\d+)?)\s*s?)?\s*$/i.exec(text);
  if (match === null) return { problem: "A light reads like “Fl(2) W 10s”: class, group, colour, period." };
  const kind = classes[match[1].toLowerCase()];
  if (kind === undefined) return { problem: `“${match[1]}” is no class of light. There are F, Fl, LFl, Q, Oc, Iso and Mo.` };
  const colours = [...(match[3].toUpperCase() || "W")];
  const period = match[4] === undefined ? undefined : Number(match[4]);
  if (period !== undefined && (period < 0.5 || period > periodMaxS)) return { problem: `A period lasts from half a second to ${periodMaxS} seconds.` };
  const light = shape(kind, match[2]?.replaceAll(/\s/g, "").toUpperCase(), period, new Intl.ListFormat("en").format(colours.map((letter) => colourNames[letter])));
  if (light.problem !== undefined) return light;
  if (light.spans.length / light.period > flashesPerSecondMax) return { problem: "That would flash too quickly to be looked at: give it a longer period." };
  const group = match[2] === undefined || light.plain ? "" : `(${match[2].replaceAll(/\s/g, "").toUpperCase()})`;
  const time = kind.symbol === "F" || (kind.symbol === "Q" && group === "") ? "" : ` ${light.period}s`;
  return { ...light, colours, name: `${kind.symbol}${group} ${colours.join("")}${time}` };
}

function shape(kind, group, asked, colour) {
  const period = asked ?? kind.period;
  const every = `every ${period} seconds`;
  if (kind.symbol === "F") return { period: 1, spans: [[0, 1]], plain: true, sentence: `A steady ${colour} light.` };
  if (kind.symbol === "Iso") return { period, spans: [[0, period / 2]], plain: true, sentence: `As much ${colour} light as dark, ${every}.` };
  if (kind.symbol === "Mo") return morse(group, period, colour, every);
  if (kind.symbol === "Q" && group === undefined) return { period: 1, spans: [[0, 0.4]], sentence: `Quick ${colour} flashes without a pause, sixty a minute.` };
  const groups = (group ?? "1").split("+").map(Number);
  const count = groups.reduce((sum, size) => sum + size, 0);
  if (!groups.every((size) => size >= 1) || count > 9) return { problem: "A group counts from one to nine, like (3) or (2+1)." };
  const marks = line(groups, kind, asked ?? Math.max(period, count * (kind.on + kind.gap) + 3));
  const [first, ...others] = groups;
  const said = `${first === 1 ? kind.thing : kind.things}${others.map((size) => `, then ${numbers[size]}`).join("")}${others.length > 0 ? "," : ""}`;
  const { period: whole } = marks;
  if (kind.symbol === "Oc") {
    return { period: whole, spans: invert(marks.spans, whole), sentence: `A ${colour} light that goes dark: ${numbers[first]} ${said} every ${whole} seconds.` };
  }
  const number = numbers[first];
  return { period: whole, spans: marks.spans, sentence: `${number[0].toUpperCase()}${number.slice(1)} ${colour} ${said} every ${whole} seconds.` };
}

/** Sets the marks of all groups in a row; where the period is too short for them they shrink together. */
function line(groups, kind, period) {
  const spans = [];
  let at = 0;
  for (const size of groups) {
    for (let mark = 0; mark < size; mark++) {
      spans.push([at, at + kind.on]);
      at += kind.on + kind.gap;
    }
    at += kind.gap * 1.5;
  }
  const end = spans.at(-1)[1];
  const scale = Math.min(1, (period * 0.72) / end);
  return { period, spans: spans.map(([from, to]) => [from * scale, to * scale]) };
}

function invert(dark, period) {
  const lit = [];
  let from = 0;
  for (const [start, end] of dark) {
    if (start > from) lit.push([from, start]);
    from = end;
  }
  if (from < period) lit.push([from, period]);
  return lit;
}

function morse(letter, period, colour, every) {
  const code = letters[letter ?? "A"];
  if (code === undefined) return { problem: "Mo takes one letter, like Mo(A)." };
  const spans = [];
  let at = 0;
  for (const sign of code) {
    const length = sign === "." ? 0.5 : 1.5;
    spans.push([at, at + length]);
    at += length + 0.5;
  }
  const scale = Math.min(1, (period * 0.8) / at);
  return { period, spans: spans.map(([from, to]) => [from * scale, to * scale]), sentence: `The letter ${letter ?? "A"} in Morse, ${colour}, ${every}.` };
}

/** Brightness from 0 to 1 at a time in seconds; lamps swell and fade a little. */
export function brightnessAt({ period, spans }, seconds) {
  const now = ((seconds % period) + period) % period;
  const ramp = 0.09;
  let brightest = 0;
  for (const [from, to] of spans) {
    if (from === 0 && to === period) return 1;
    const inside = Math.min(now - from, to - now);
    brightest = Math.max(brightest, Math.min(1, Math.max(0, inside / ramp + 0.5)));
  }
  return brightest;
}

/** The lit spans of the first `seconds`, for drawing; `phase` is when a period starts. */
export function spansWithin({ period, spans }, seconds, phase = 0) {
  const all = [];
  for (let start = (phase % period) - period; start < seconds; start += period) {
    for (const [from, to] of spans) {
      const lit = [Math.max(0, start + from), Math.min(seconds, start + to)];
      if (lit[0] < lit[1]) all.push(lit);
    }
  }
  return all;
}
