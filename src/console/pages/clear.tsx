// Clearing: what would be cleared shows while it is typed; then the proof arrives, host by host; and what was cleared before.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ClearState } from "../../wire/customer/clear.ts";
import type { Domain } from "../../wire/customer/domain.ts";
import { at, type Refusal, refusalFrom, send } from "../api.ts";
import { useAsked } from "../asked.ts";
import { bodyOf, kinds, linesOf, type ClearKind } from "../clear-form.ts";
import { useDoing } from "../doing.ts";
import { useDryRun } from "../dry-run.ts";
import { ClearHistory } from "../parts/clear-history.tsx";
import { ClearProof } from "../parts/clear-proof.tsx";
import { DryRunFound } from "../parts/dry-run-found.tsx";
import {
  Button,
  Check,
  Choice,
  Choices,
  Confirm,
  TextField,
  Note,
  Panel,
  RefusalNote,
} from "../parts/pieces.tsx";
import { useMay } from "../session.ts";
import type { TabProps } from "../tab.ts";

export function ClearTab({ domain, route }: TabProps): JSX.Element {
  const may = useMay("clear");
  const [made, setMade] = useState<string>();
  return (
    <>
      {may ? (
        <ClearForm domain={domain} given={route.query.get("url") ?? ""} onMade={setMade} />
      ) : (
        <Note>This session may look and not clear: its role is read.</Note>
      )}
      {made !== undefined && <ClearProof key={made} domain={domain} id={made} />}
      <ClearHistory domain={domain} onOpen={setMade} />
    </>
  );
}

function ClearForm({
  domain,
  given,
  onMade,
}: {
  readonly domain: string;
  readonly given: string;
  readonly onMade: (id: string) => void;
}): JSX.Element {
  const [kind, setKind] = useState<ClearKind>("urls");
  const [text, setText] = useState(given);
  const [isSoft, setSoft] = useState(false);
  const [host, setHost] = useState(domain);
  const known = useAsked<Domain>(at`/domain/${domain}/`, { topics: ["domains"], domain });
  const doing = useDoing();
  const body = bodyOf(kind, text, isSoft);
  const dry = useDryRun(host, body);
  const { label, hint, one } = kinds[kind];
  const [isUnsure, setUnsure] = useState(false);
  const clear = (): void => {
    setUnsure(false);
    void doing.run(async () => {
      const path = `${at`/clear-accelerator-cache/${host}/`}?wait=0`;
      const { clear_id: id } = await send<ClearState>("POST", path, body).catch(
        (error: unknown) => {
          setUnsure(mayBeDone(refusalFrom(error)));
          throw error;
        },
      );
      onMade(id);
      setText("");
    });
  };
  const number = linesOf(text).length;
  return (
    <Panel title="Clear the cache">
      <Choices
        label="What to clear"
        value={kind}
        options={(Object.keys(kinds) as ClearKind[]).map((name) => [name, kinds[name].title])}
        onChange={setKind}
      />
      {(known.value?.sub_domains.length ?? 0) > 0 && (
        <Choice
          label="Of which host"
          value={host}
          options={[
            [domain, `${domain}, with its sub-domains`],
            ...(known.value?.sub_domains ?? []).map(({ name }) => [name, name] as const),
          ]}
          onChange={setHost}
        />
      )}
      {kind !== "everything" && (
        <TextField label={label} value={text} onInput={setText} rows={4} hint={hint} />
      )}
      <Check
        label="Only make it stale: it may still be served while the origin is asked, where a rule allows it"
        isOn={isSoft}
        onChange={setSoft}
      />
      <div class="row">
        {kind === "everything" ? (
          <Confirm
            question={`Clear everything of ${host} from every host?`}
            doIt="Clear everything"
            onYes={clear}
          >
            Clear everything
          </Confirm>
        ) : (
          <Button
            kind="main"
            disabled={body === undefined || doing.isBusy || dry.failure !== undefined}
            onClick={clear}
          >
            {number > 1 ? `Clear ${number} ${one}s` : "Clear"}
          </Button>
        )}
      </div>
      {doing.isBusy && <p role="status">Asking central to clear …</p>}
      <RefusalNote failure={doing.failure} />
      {isUnsure && (
        <Note tone="bad">
          It is not known whether the clear was taken. Look at “Clears so far” below, once central
          answers: what stands there was taken, and what does not has to be asked for again.
        </Note>
      )}
      <DryRunFound {...dry} />
    </Panel>
  );
}

/** No answer of central came: it may have taken what it was sent all the same. */
function mayBeDone({ status }: Refusal): boolean {
  return status === 0;
}
