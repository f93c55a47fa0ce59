// Who changed what of the customer, the newest first.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AuditedChange } from "../../wire/customer/audit.ts";
import { auditFilterOf, auditPath, type AuditFilter } from "../audit-filter.ts";
import type { PageProps } from "../frame-props.ts";
import { operationChoices } from "../operation-words.ts";
import { usePages } from "../pages-asked.ts";
import { AuditRow } from "../parts/audit-row.tsx";
import { Button, Choice, TextField, Panel, RefusalNote, Table } from "../parts/pieces.tsx";
import { goTo, hrefTo } from "../route.ts";

const pageLines = 50;

export function AuditPage({ route }: PageProps): JSX.Element {
  const filter = auditFilterOf(route.query);
  const { items, failure, more, again } = usePages<AuditedChange>(auditPath(filter, pageLines));
  return (
    <>
      <h1>Audit</h1>
      <AuditForm key={JSON.stringify(filter)} filter={filter} />
      <Panel title="Changes" beside={<Button onClick={again}>Look for newer ones</Button>}>
        <RefusalNote failure={failure} />
        {items === undefined && failure === undefined && <p class="quiet">Loading …</p>}
        {items?.length === 0 && (
          <p class="quiet">{more === undefined ? "None was found." : "None was found so far."}</p>
        )}
        {items !== undefined && items.length > 0 && (
          <Table caption="Changes" heads={["When", "Who", "What", "Which", "From", ""]}>
            {items.map((change) => (
              <AuditRow key={change.id} change={change} />
            ))}
          </Table>
        )}
        {more !== undefined && <Button onClick={more}>Older ones</Button>}
      </Panel>
    </>
  );
}

function AuditForm({ filter }: { readonly filter: AuditFilter }): JSX.Element {
  const [fields, setFields] = useState(filter);
  const set = (name: keyof AuditFilter) => (value: string) =>
    setFields((before) => ({ ...before, [name]: value.trim() }));
  const known = operationChoices();
  const { operation = "" } = fields;
  const isOther = operation !== "" && !known.some(([id]) => id === operation);
  return (
    <Panel title="Which changes">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          goTo(hrefTo(["audit"], fields));
        }}
      >
        <div class="row">
          <TextField
            label="Not before"
            type="datetime-local"
            value={fields.since ?? ""}
            onInput={set("since")}
          />
          <TextField
            label="Not after"
            type="datetime-local"
            value={fields.until ?? ""}
            onInput={set("until")}
          />
          <TextField label="User" value={fields.username ?? ""} onInput={set("username")} />
          <Choice
            label="What was done"
            value={operation}
            options={[
              ["", "anything"],
              ...known,
              ...(isOther ? [[operation, operation] as const] : []),
            ]}
            onChange={set("operation")}
          />
          <Button kind="main" submits>
            Filter
          </Button>
          <Button onClick={() => goTo(hrefTo(["audit"]))}>All changes</Button>
        </div>
      </form>
    </Panel>
  );
}
