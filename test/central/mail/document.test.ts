// Rendering: both forms say the same, and what customers and visitors named is only ever text.

import { expect, test } from "vitest";
import { escapeHtml } from "../../../src/core/html-text.ts";
import { oneLine, renderMail } from "../../../src/central/mail/document.ts";

const hostile = "<script>alert(\"x\")</script> & 'y'\r\nBcc: eve@x.org\u202eevil";

test("hostile names stay text, in one line", () => {
  const { subject, text, html } = renderMail({
    subject: hostile,
    preview: hostile,
    title: hostile,
    blocks: [
      { kind: "text", text: hostile },
      { kind: "heading", text: hostile },
      { kind: "callout", text: hostile, tone: "bad" },
      { kind: "figures", figures: [{ label: hostile, value: hostile, note: hostile }] },
      { kind: "table", columns: [{ label: "L" }], rows: [[hostile]], more: hostile },
      { kind: "button", label: "Go", url: 'https://x.example/?a="><b>' },
    ],
    footer: [hostile],
    unsubscribeUrl: 'https://x.example/?t="><i>',
  });
  expect(subject).not.toMatch(/[\r\n\u202e]/);
  expect(subject.length).toBeLessThanOrEqual(200);
  expect(text).not.toMatch(/^Bcc:/m);
  expect(text).not.toContain("\u202e");
  expect(html).not.toMatch(/<script|<b>|<i>|\u202e/);
  expect(html.match(/&lt;script&gt;/g)?.length).toBeGreaterThan(9);
});

test("nothing is fetched, and both forms hold every fact", () => {
  const { text, html } = renderMail({
    subject: "s",
    preview: "p",
    title: "The title",
    blocks: [
      {
        kind: "table",
        columns: [{ label: "Name" }, { label: "Count", isNumber: true }],
        rows: [
          ["www.example.com", "12"],
          ["b", "1,234"],
        ],
      },
    ],
    footer: ["why"],
    unsubscribeUrl: "https://c.example/mail/unsubscribe?token=t",
  });
  expect(html).not.toMatch(/<img|<link|<script|url\(|@import|src=/);
  for (const form of [text, html])
    for (const fact of ["The title", "www.example.com", "1,234", "why", "unsubscribe?token=t"])
      expect(form).toContain(fact);
  expect(text).toContain("Name             Count\nwww.example.com     12\nb                1,234");
});

test("the two helpers", () => {
  expect(escapeHtml(`<a href="x">'&'</a>`)).toBe(
    "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;",
  );
  expect(oneLine(" a\r\n\tb\u2028c\u0000 ")).toBe("a b c");
});
