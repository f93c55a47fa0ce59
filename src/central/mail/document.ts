// A mail as blocks, and its two renderings: plain text and HTML. Both say the same, and text from outside is
// escaped in one place.
//
// The HTML is made for mail programs: tables only for what is a table, inline styles where programs drop the
// sheet, colours that bear being inverted, no image, no script, nothing fetched.

import { escapeHtml } from "../../core/html-text.ts";

export type Tone = "plain" | "good" | "bad";

export type Block =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "heading"; readonly text: string }
  /** One line that everything else is about. */
  | { readonly kind: "callout"; readonly text: string; readonly tone: Tone }
  | { readonly kind: "figures"; readonly figures: readonly Figure[] }
  | {
      readonly kind: "table";
      readonly columns: readonly Column[];
      readonly rows: readonly (readonly string[])[];
      /** The words for what was left out. */
      readonly more?: string;
    }
  | { readonly kind: "button"; readonly label: string; readonly url: string };

export type Figure = { readonly label: string; readonly value: string; readonly note?: string };
export type Column = {
  readonly label: string;
  readonly isNumber?: boolean;
  /** Whether the column is left out on small screens. */
  readonly isExtra?: boolean;
};

export type MailDocument = {
  readonly subject: string;
  /** The text that mail programs show beside the subject. */
  readonly preview: string;
  readonly title: string;
  readonly blocks: readonly Block[];
  /** Why the reader gets this mail. */
  readonly footer: readonly string[];
  readonly unsubscribeUrl: string | null;
};

const textWidth = 78;
const subjectCharsMax = 200;

export function renderMail(document: MailDocument): {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
} {
  return {
    subject: oneLine(document.subject).slice(0, subjectCharsMax),
    text: renderText(document),
    html: renderHtml(document),
  };
}

/**
 * Makes one line of a text. Names of customers come into subjects and texts: none of their lines may begin a
 * line of ours, and nothing may turn the direction of reading.
 */
export function oneLine(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, "")
    .trim();
}

function renderText({ title, blocks, footer, unsubscribeUrl }: MailDocument): string {
  const parts = [underlined(title, "="), ...blocks.map((block) => textOf(block))];
  const end = [
    ...footer.map((line) => wrapped(line)),
    ...(unsubscribeUrl === null ? [] : [`Unsubscribe: ${unsubscribeUrl}`]),
  ];
  return `${[...parts, `-- \n${end.join("\n")}`].join("\n\n")}\n`;
}

function textOf(block: Block): string {
  switch (block.kind) {
    case "text":
      return wrapped(block.text);
    case "heading":
      return underlined(block.text, "-");
    case "callout":
      return wrapped(`* ${oneLine(block.text)}`);
    case "figures":
      return block.figures
        .map(
          ({ label, value, note }) => `${label}: ${value}${note === undefined ? "" : ` (${note})`}`,
        )
        .map((line) => oneLine(line))
        .join("\n");
    case "table":
      return textTable(block.columns, block.rows, block.more);
    case "button":
      return `${oneLine(block.label)}:\n${oneLine(block.url)}`;
    default:
      return block satisfies never;
  }
}

const graphemes = new Intl.Segmenter("en");

function widthOf(text: string): number {
  return Array.from(graphemes.segment(text)).length;
}

function underlined(text: string, line: string): string {
  const shown = oneLine(text);
  return `${shown}\n${line.repeat(Math.min(textWidth, widthOf(shown)))}`;
}

function wrapped(text: string): string {
  const lines: string[] = [];
  let line = "";
  for (const word of oneLine(text).split(" ")) {
    if (line !== "" && line.length + 1 + word.length > textWidth) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join("\n");
}

function textTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  more: string | undefined,
): string {
  const cells = [columns.map(({ label }) => label), ...rows].map((row) =>
    row.map((cell) => oneLine(cell)),
  );
  const widths = columns.map((_, at) => Math.max(...cells.map((row) => widthOf(row[at] ?? ""))));
  const lines = cells.map((row) =>
    columns
      .map(({ isNumber }, at) => {
        const cell = row[at] ?? "";
        const room = " ".repeat((widths[at] ?? 0) - widthOf(cell));
        return isNumber === true ? room + cell : cell + room;
      })
      .join("  ")
      .trimEnd(),
  );
  return [...lines, ...(more === undefined ? [] : [oneLine(more)])].join("\n");
}

/** A style that fits both texts and quoted attributes. */
const font = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;";

/**
 * The inline colours are for light mode. Programs that know dark mode use these rules, the others invert by
 * themselves.
 */
const sheet = `
  :root { color-scheme: light dark; supported-color-schemes: light dark; }
  body { margin: 0; padding: 0; }
  td { overflow-wrap: anywhere; }
  .number, th { overflow-wrap: normal; white-space: nowrap; }
  @media (max-width: 480px) { .card { padding: 20px 16px !important; } .figure { display: block !important; width: auto !important; } .extra { display: none !important; } td, th { font-size: 13px !important; } }
  @media (prefers-color-scheme: dark) {
    body, .ground { background: #16181d !important; }
    .card { background: #1f2229 !important; border-color: #343842 !important; }
    h1, h2, p, td, .value { color: #e8eaee !important; }
    th, .quiet, .quiet a { color: #a5abb8 !important; }
    td, th { border-color: #343842 !important; }
    .callout { color: #e8eaee !important; background: #2a2e37 !important; }
    .button { background: #4c8dff !important; color: #0b1220 !important; }
  }`;

const toneColour: Readonly<Record<Tone, string>> = {
  plain: "#2f6fdf",
  good: "#1c8a4b",
  bad: "#c5362c",
};

function renderHtml(document: MailDocument): string {
  const { subject, preview, title, blocks, footer, unsubscribeUrl } = document;
  const end = footer.map((line) => escapeHtml(oneLine(line))).join("<br>\n");
  const unsubscribe =
    unsubscribeUrl === null
      ? ""
      : `<br>\n<a href="${escapeHtml(unsubscribeUrl)}" style="color:#5b6270;">Unsubscribe</a>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(oneLine(subject))}</title>
<style>${sheet}
</style>
</head>
<body class="ground" style="margin:0;padding:0;background:#f2f4f7;">
<div style="display:none;max-height:0;overflow:hidden;">${escapeHtml(oneLine(preview))}</div>
<table role="presentation" class="ground" width="100%" cellpadding="0" cellspacing="0" border="0" style="background:#f2f4f7;"><tr><td align="center" style="padding:24px 8px;border:0;">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="max-width:640px;"><tr><td class="card" style="padding:28px 32px;background:#ffffff;border:1px solid #dfe3ea;border-radius:8px;text-align:left;${font}">
<h1 style="margin:0 0 16px;font-size:21px;line-height:1.3;color:#171a21;">${escapeHtml(oneLine(title))}</h1>
${blocks.map((block) => htmlOf(block)).join("\n")}
</td></tr><tr><td class="quiet" style="padding:16px 32px;font-size:12px;line-height:1.6;color:#5b6270;border:0;${font}">
${end}${unsubscribe}
</td></tr></table>
</td></tr></table>
</body>
</html>
`;
}

function htmlOf(block: Block): string {
  switch (block.kind) {
    case "text":
      return `<p style="margin:0 0 16px;font-size:15px;line-height:1.55;color:#2a2f3a;">${escapeHtml(oneLine(block.text))}</p>`;
    case "heading":
      return `<h2 style="margin:24px 0 8px;font-size:16px;line-height:1.3;color:#171a21;">${escapeHtml(oneLine(block.text))}</h2>`;
    case "callout":
      return `<p class="callout" style="margin:0 0 16px;padding:12px 14px;font-size:15px;line-height:1.5;color:#171a21;background:#f2f4f7;border-left:4px solid ${toneColour[block.tone]};">${escapeHtml(oneLine(block.text))}</p>`;
    case "figures":
      return htmlFigures(block.figures);
    case "table":
      return htmlTable(block.columns, block.rows, block.more);
    case "button":
      return `<p style="margin:8px 0 20px;"><a class="button" href="${escapeHtml(block.url)}" style="display:inline-block;padding:11px 20px;font-size:15px;font-weight:600;color:#ffffff;background:#2f6fdf;border-radius:6px;text-decoration:none;">${escapeHtml(block.label)}</a></p>
<p class="quiet" style="margin:0 0 16px;font-size:13px;line-height:1.5;color:#5b6270;word-break:break-all;">${escapeHtml(block.url)}</p>`;
    default:
      return block satisfies never;
  }
}

function htmlFigures(figures: readonly Figure[]): string {
  const width = Math.floor(100 / Math.max(1, figures.length));
  const cells = figures.map(
    ({ label, value, note }) =>
      `<td class="figure" width="${width}%" valign="top" style="padding:4px 12px 12px 0;border:0;"><div class="quiet" style="font-size:12px;color:#5b6270;">${escapeHtml(oneLine(label))}</div><div class="value" style="font-size:22px;font-weight:600;color:#171a21;">${escapeHtml(oneLine(value))}</div>${note === undefined ? "" : `<div class="quiet" style="font-size:12px;color:#5b6270;">${escapeHtml(oneLine(note))}</div>`}</td>`,
  );
  return `<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="margin:0 0 8px;"><tr>${cells.join("")}</tr></table>`;
}

function htmlTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  more: string | undefined,
): string {
  const align = ({ isNumber, isExtra }: Column): string => {
    const classes = [isNumber === true ? "number" : "", isExtra === true ? "extra" : ""];
    const named = classes.filter(Boolean).join(" ");
    return `${named === "" ? "" : `class="${named}" `}align="${isNumber === true ? "right" : "left"}"`;
  };
  const head = columns.map(
    (column) =>
      `<th ${align(column)} style="padding:6px 10px 6px 0;font-size:12px;font-weight:600;color:#5b6270;border-bottom:1px solid #dfe3ea;">${escapeHtml(column.label)}</th>`,
  );
  const body = rows.map(
    (row) =>
      `<tr>${columns
        .map(
          (column, at) =>
            `<td ${align(column)} valign="top" style="padding:7px 10px 7px 0;font-size:14px;line-height:1.4;color:#2a2f3a;border-bottom:1px solid #eceff4;">${escapeHtml(oneLine(row[at] ?? ""))}</td>`,
        )
        .join("")}</tr>`,
  );
  const rest =
    more === undefined
      ? ""
      : `\n<p class="quiet" style="margin:0 0 16px;font-size:13px;color:#5b6270;">${escapeHtml(oneLine(more))}</p>`;
  return `<table width="100%" cellpadding="0" cellspacing="0" border="0" style="margin:0 0 12px;border-collapse:collapse;"><tr>${head.join("")}</tr>
${body.join("\n")}
</table>${rest}`;
}
