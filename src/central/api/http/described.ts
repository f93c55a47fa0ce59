// The rows of the API as they are described, never served. They hold nothing of central, and nothing of
// central decides what they say.

import { openApiDocument } from "../openapi/openapi.ts";
import { openApiPage } from "../openapi/openapi-page.ts";
import type { JsonObject } from "../openapi/openapi-schema.ts";
import { subjects, type Subject } from "../resources.ts";
import type { ResourceDeps } from "../deps.ts";

/**
 * Returns a stand-in for whatever rows are made with: any member of it, and the result of calling it, is the
 * stand-in again; as a number it is 0.
 */
function placeholder(): ResourceDeps {
  const self: ResourceDeps = new Proxy(
    Object(() => {}),
    {
      get: (_target, name) => (name === Symbol.toPrimitive ? () => 0 : self),
      apply: () => self,
    },
  );
  return self;
}

export function describedSubjects(): readonly Subject[] {
  return subjects(placeholder());
}

export function describedDocument(): JsonObject {
  return openApiDocument(describedSubjects());
}

/** Returns the document as it is served, printed and kept in docs/. */
export function describedText(): string {
  return `${JSON.stringify(describedDocument(), undefined, 2)}\n`;
}

/** Returns the same document as a page to read. */
export function describedPage(): string {
  return openApiPage(describedDocument());
}
