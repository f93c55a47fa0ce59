// The rows of the API to be told of, never served: nothing of central is there, and nothing of it decides what they tell.

import { openApiDocument } from "../openapi/openapi.ts";
import { openApiPage } from "../openapi/openapi-page.ts";
import type { JsonObject } from "../openapi/openapi-schema.ts";
import { subjects, type Subject } from "../resources.ts";
import type { ResourceDeps } from "../deps.ts";

/** Stands for whatever rows are made with: any member of it, and what a call of it gives, is it again; as a number it is 0. */
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

/** The same to read. */
export function describedPage(): string {
  return openApiPage(describedDocument());
}
