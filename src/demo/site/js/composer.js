// The composer on "Reading a light": type a light, see it shine.

import { findLamps } from "./lamps.js";
import { parseRhythm, spansWithin } from "./rhythm.js";

const form = document.querySelector("#composer");
const input = form.querySelector("input");
const lamp = form.querySelector("[data-rhythm]");
const sentence = form.querySelector("output");
const strip = form.querySelector("svg");
const chips = [...form.querySelectorAll("[data-light]")];
const stripS = 30;

function show() {
  const light = parseRhythm(input.value);
  const wrong = light.problem !== undefined;
  input.setAttribute("aria-invalid", String(wrong));
  sentence.textContent = wrong ? light.problem : light.sentence;
  sentence.classList.toggle("wrong", wrong);
  for (const chip of chips) chip.setAttribute("aria-pressed", String(!wrong && parseRhythm(chip.dataset.light).name === light.name));
  if (wrong) return;
  lamp.dataset.rhythm = input.value;
  lamp.dataset.colour = light.colours[0];
  strip.dataset.colour = light.colours[0];
  strip.replaceChildren(
    ...spansWithin(light, stripS).map(([from, to]) => {
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [name, value] of Object.entries({ x: from * 20, y: 0, width: (to - from) * 20, height: 16 })) bar.setAttribute(name, value);
      return bar;
    }),
  );
  findLamps();
}

for (const chip of chips) {
  chip.addEventListener("click", () => {
    input.value = chip.dataset.light;
    show();
  });
}
input.addEventListener("input", show);
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
show();
