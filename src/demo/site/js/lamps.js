// Lights every lamp on the page in its own rhythm, all by one clock: the second hand of the visitor's own.
// A lamp is any element with data-rhythm and perhaps data-phase, the second at which a period starts; it gets --on from 0 to 1. The element with data-minute gets --t, the part of this minute gone, from 0 to 1.

import { brightnessAt, parseRhythm } from "./rhythm.js";

const still = matchMedia("(prefers-reduced-motion: reduce)");
const minutes = [...document.querySelectorAll("[data-minute]")];
let lamps = [];
let frame = 0;
let held = still.matches;

/** Reads the lamps of the page again; call it after changing a data-rhythm. */
export function findLamps() {
  lamps = [...document.querySelectorAll("[data-rhythm]")].map((element) => ({ element, light: parseRhythm(element.dataset.rhythm), phase: Number(element.dataset.phase ?? 0), on: -1 }));
  if (held) for (const { element } of lamps) element.style.setProperty("--on", "1");
}

function tick() {
  const seconds = (Date.now() / 1000) % 3600;
  for (const lamp of lamps) {
    if (lamp.light.problem !== undefined) continue;
    const on = Math.round(brightnessAt(lamp.light, seconds - lamp.phase) * 50) / 50;
    if (on === lamp.on) continue;
    lamp.on = on;
    lamp.element.style.setProperty("--on", String(on));
  }
  for (const minute of minutes) minute.style.setProperty("--t", ((seconds % 60) / 60).toFixed(4));
  frame = requestAnimationFrame(tick);
}

function hold(now) {
  held = now;
  cancelAnimationFrame(frame);
  document.documentElement.toggleAttribute("data-held", held);
  for (const button of document.querySelectorAll("[data-hold]")) {
    button.hidden = false;
    button.textContent = held ? "Start the lamps" : "Hold the lamps";
  }
  findLamps();
  if (!held) tick();
}

for (const button of document.querySelectorAll("[data-hold]")) button.addEventListener("click", () => hold(!held));
still.addEventListener("change", () => hold(still.matches));
hold(held);
