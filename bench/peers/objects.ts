// What is cached in the comparison: 100 directories of 1,000 URLs, as shops and papers have them.

const words = (text: string): readonly string[] => text.split(" ");
const sections = words("shop news guide img api");
const subjects = words(
  "lamps chairs tables rugs clocks mirrors shelves beds sofas desks vases frames curtains cushions benches stools hooks bowls kettles knives",
);
const adjectives = words("brass oak linen copper green white tall round old small");
const ends = words(".html .html .webp .webp .json .css .js ?page=2 ?sort=price");

export const urlsInDirectory = 1_000;

/** Each directory ends with "/"; no one is the beginning of another. */
export function directories(): readonly string[] {
  return sections.flatMap((section) => subjects.map((subject) => `/${section}/${subject}/`));
}

export function urlsIn(directory: string): readonly string[] {
  return Array.from({ length: urlsInDirectory }, (_, at) => {
    const adjective = adjectives[at % adjectives.length] ?? "";
    const other = adjectives[Math.floor(at / 100)] ?? "";
    return `${directory}${adjective}-${other}-${4_000 + at}${ends[at % ends.length] ?? ""}`;
  });
}
