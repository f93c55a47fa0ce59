// Clear patterns that ask for much: families that are known to be bad for FTS5, and changes of one that was found.

/** Words that very many entries have, and prefixes that very many words begin with. */
const words = [
  "xend",
  "html",
  "shop",
  "api",
  "java",
  "17",
  "openjdk",
  "jre",
  "headless",
  "use",
  "class",
  "gtk4",
  "image",
  "text",
  "webp",
  "png",
  "generated",
  "page",
];
const prefixes = [
  "z2*",
  "xe*",
  "ht*",
  "sh*",
  "ap*",
  "ja*",
  "ge*",
  "st*",
  "op*",
  "he*",
  "jr*",
  "us*",
  "cl*",
  "im*",
  "te*",
  "we*",
];
const columns = ["path", "url", "dir", "ext", "mime", "kind", "param", "query"];

const joined = (parts: readonly string[], by: string): string => parts.join(` ${by} `);
const many = (count: number, text: (no: number) => string): string[] =>
  Array.from({ length: count }, (_, no) => text(no));
const word = (no: number): string => words[no % words.length] ?? "xend";
const prefix = (no: number): string => prefixes[no % prefixes.length] ?? "z2*";

export function families(): string[] {
  return [
    joined(prefixes, "OR"),
    joined(prefixes, "AND"),
    joined(
      many(16, () => "z2*"),
      "OR",
    ),
    joined(
      many(16, () => "z2*"),
      "AND",
    ),
    joined(
      many(16, (no) => `url:${"z2fshop".slice(0, 2 + (no % 6))}*`),
      "OR",
    ),
    joined(
      many(16, (no) => `url:${"z2fshop".slice(0, 2 + (no % 6))}*`),
      "AND",
    ),
    joined(
      many(8, () => "url:z2f*"),
      "OR",
    ) +
      " OR " +
      joined(
        many(8, () => "dir:z2f*"),
        "OR",
      ),
    joined(
      many(8, () => "(url:z2f* AND dir:z2f*)"),
      "OR",
    ),
    joined(many(64, word), "OR"),
    joined(
      many(64, () => "xend"),
      "AND",
    ),
    joined(
      many(64, () => "xend"),
      "OR",
    ),
    many(64, () => "xend").join(" "),
    `"${many(64, () => "xend").join(" ")}"`,
    `"${many(16, word).join(" ")}"`,
    `NEAR(${many(64, () => "xend").join(" ")}, 1000)`,
    `NEAR(${many(60, word).join(" ")}, 100000)`,
    `NEAR(openjdk 17 jre headless api java html xend, 1000)`,
    joined(
      many(16, () => "NEAR(openjdk xend, 1000)"),
      "OR",
    ),
    joined(
      many(21, (no) => `NEAR(${word(no)} ${word(no + 1)} ${word(no + 2)}, 1000)`),
      "OR",
    ),
    joined(
      many(16, () => `"openjdk 17 jre headless"`),
      "OR",
    ),
    joined(
      many(16, () => `"openjdk 17 jre"`),
      "AND",
    ),
    joined(["kind:generated", ...many(60, word)], "NOT"),
    joined(["xend", ...many(15, prefix)], "NOT"),
    joined(
      many(32, (no) => `(kind:generated NOT ${word(no)})`),
      "OR",
    ),
    joined(
      many(16, (no) => `(xend NOT ${prefix(no)})`),
      "OR",
    ),
    joined(
      many(16, (no) => `(xend NOT ${prefix(no)})`),
      "AND",
    ),
    joined(
      many(8, () => "(url:z2f* NOT dir:z2f*)"),
      "OR",
    ),
    joined(
      many(16, (no) => `^${prefix(no)}`),
      "OR",
    ),
    joined(
      many(16, (no) => `"openjdk 17 j"* OR ${word(no)}`),
      "OR",
    ),
    joined(
      many(16, () => `"headless api j"*`),
      "OR",
    ),
    joined(
      many(
        8,
        (no) => `((${word(no)} OR ${prefix(no)}) AND (${word(no + 3)} OR ${prefix(no + 5)}))`,
      ),
      "AND",
    ),
    joined(
      many(8, (no) => `((z2* OR ${prefix(no)}) AND xend)`),
      "AND",
    ),
    ...columns.map((column) =>
      joined(
        many(16, (no) => `${column}:${prefix(no)}`),
        "OR",
      ),
    ),
    joined(
      many(16, () => "- {kind mime ext} : z2*"),
      "OR",
    ),
  ];
}

/** Another pattern like it; by `seed`, always the same. */
export function changed(pattern: string, seed: number): string {
  const operators = ["AND", "OR", "NOT"];
  const parts = pattern.split(/ (?:AND|OR|NOT) /);
  const at = (seed * 7) % parts.length;
  const fresh = seed % 3 === 0 ? prefix(seed >> 2) : seed % 3 === 1 ? "url:z2f*" : word(seed >> 1);
  switch (seed % 5) {
    case 0:
      return pattern.replace(/ (AND|OR|NOT) /, ` ${operators[seed % 3]} `);
    case 1:
      return pattern.replaceAll(/ (AND|OR|NOT) /g, ` ${operators[(seed >> 2) % 3]} `);
    case 2:
      return `${pattern} ${operators[(seed >> 1) % 3]} ${fresh}`;
    case 3:
      return `(${pattern}) ${operators[(seed >> 1) % 3]} (${parts.slice(0, 3).join(" OR ")})`;
    default:
      return pattern.replace(parts[at] ?? "", () => fresh);
  }
}
