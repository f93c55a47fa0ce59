// One change of the audit trail; what was asked for is shown when it is opened.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AuditedChange } from "../../wire/customer/audit.ts";
import { aboutWords, doerWords } from "../audit-filter.ts";
import { operationWords } from "../operation-words.ts";
import { visibleLines, visibleText } from "../visible-text.ts";
import { moment } from "../words.ts";
import { Button, Time } from "./pieces.tsx";

const columns = 6;

export function AuditRow({ change }: { readonly change: AuditedChange }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const { when, token_id: tokenId, operation, address, detail } = change;
  const what = visibleText(operationWords(operation));
  return (
    <>
      <tr>
        <td>
          <Time at={when} />
        </td>
        <td>
          {visibleText(doerWords(change))}{" "}
          {tokenId !== null && <span class="quiet">by token {tokenId}</span>}
        </td>
        <td class="long">{what}</td>
        <td class="long">{visibleText(aboutWords(change))}</td>
        <td class="mono">{address ?? "–"}</td>
        <td>
          <Button
            onClick={() => setOpen(!isOpen)}
            label={`${isOpen ? "Close" : "Open"}: ${what}, ${moment(Date.parse(when))}`}
          >
            {isOpen ? "Close" : "Open"}
          </Button>
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={columns}>
            <p class="quiet">
              {visibleText(operation)} {change.method} {change.path}
            </p>
            <pre class="secret">{visibleLines(JSON.stringify(detail, null, 2))}</pre>
          </td>
        </tr>
      )}
    </>
  );
}
