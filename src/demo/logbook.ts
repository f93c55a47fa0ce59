// The demo backend's text: any number of pages of an invented keeper's log. Each page is the same every time
// it is asked for.

const winds = [
  "calm",
  "light airs, SE",
  "S, gentle",
  "SW, fresh",
  "W, strong",
  "NW, near gale",
  "N, whole gale",
  "E, moderate, hazy",
];
const sightings = [
  "Two trawlers standing west, lights burning well.",
  "A barque under reduced sail, hull down by noon.",
  "Porpoises, about thirty, going nowhere in particular.",
  "Nothing. Polished the prisms twice.",
  "The relief boat turned back at the bar; bread will be short.",
  "A sperm whale, or a very calm island.",
  "Fog signal from six bells to dawn. The cat objects.",
  "A swallow rested on the gallery rail and left northwards.",
  "Seas over the lantern. Wound the clockwork early.",
];

/** The number of the last page; the first is 0. */
export const logPageMax = 999_999;

/** Writes a whole HTML document. `page` is an integer in [0, logPageMax]. */
export function writeLogPage(page: number): string {
  const wind = winds[(page * 5 + 3) % winds.length];
  const sighting = sightings[(page * 7 + 2) % sightings.length];
  const next =
    page < logPageMax
      ? `<a href="/generated/page/${page + 1}.html" rel="next">page ${page + 1}</a>`
      : "the end of the book";
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Keeper's log, page ${page}</title>
<link rel="stylesheet" href="/css/base.css">
<main class="page prose">
<p class="eyebrow">Keeper's log</p>
<h1>Page ${page}</h1>
<p>Wind: ${wind}. Lamp lit at sunset, put out at sunrise.</p>
<p>${sighting}</p>
<p>Turn to ${next}, or go back to <a href="/watch/">the watch room</a>.</p>
</main>
</html>
`;
}
