// Versions of what a domain serves: which one is wanted, what the hosts proved, what another would change, and the way there and back.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ViewsetVersion } from "../../wire/customer/viewset.ts";
import { at, send } from "../api.ts";
import { useDoing, type Doing } from "../doing.ts";
import { usePages } from "../pages-asked.ts";
import { Activation, activationWords } from "../parts/activation.tsx";
import {
  Badge,
  Button,
  Check,
  Confirm,
  Note,
  Panel,
  RefusalNote,
  Table,
  Time,
} from "../parts/pieces.tsx";
import { VersionChanges } from "../parts/version-changes.tsx";
import { DevloveEditor } from "../parts/devlove-editor.tsx";
import { useMay } from "../session.ts";
import type { TabProps } from "../tab.ts";
import { visibleText } from "../visible-text.ts";

export function VersionsTab({ domain }: TabProps): JSX.Element {
  const { items, failure, more, again } = usePages<ViewsetVersion>(
    `${at`/active-viewset/${domain}/`}?order=newest&limit=50`,
    {
      topics: ["viewsets"],
      domain,
    },
  );
  const mayWrite = useMay("write");
  const [opened, setOpened] = useState<number>();
  const [edited, setEdited] = useState<string>();
  const [isAll, setAll] = useState(true);
  const doing = useDoing();
  const active = items?.find((one) => one.is_active);
  const activate = (version: ViewsetVersion): void => {
    void doing.run(async () => {
      await send(
        "PUT",
        at`/active-viewset/${domain}/${version.id}/`,
        isAll ? { require: "all" } : {},
      );
      again();
    });
  };
  const last = lastActive(items ?? []);
  return (
    <>
      {active !== undefined && (
        <Panel
          title={`${active.name} is active`}
          beside={
            mayWrite &&
            last !== undefined && (
              <Confirm
                kind="main"
                question={`Serve ${last.name} again on every host?`}
                doIt={`Back to ${last.name}`}
                onYes={() => activate(last)}
              >
                Roll back to {last.name}
              </Confirm>
            )
          }
        >
          <Activation version={active} />
        </Panel>
      )}
      {items
        ?.filter((one) => one.fleet?.state === "preparing" && !one.is_active)
        .map((one) => (
          <Panel key={one.id} title={`${one.name} is being prepared`}>
            <Activation version={one} />
          </Panel>
        ))}
      <Panel title="Versions">
        {failure !== undefined && <Note tone="bad">{failure.message}</Note>}
        {items?.length === 0 && (
          <p class="quiet">There is no version yet: import one, or store a devlove below.</p>
        )}
        {mayWrite && (
          <Check
            label="On all hosts or on none: each prepares it first, and it is given up where one cannot"
            isOn={isAll}
            onChange={setAll}
          />
        )}
        <RefusalNote failure={doing.failure} />
        {items !== undefined && items.length > 0 && (
          <Table caption="Versions" heads={["Version", "Made", "State", "Comment", ""]}>
            {items.map((version) => (
              <VersionRow
                key={version.id}
                version={version}
                mayWrite={mayWrite}
                doing={doing}
                onActivate={() => activate(version)}
                onCompare={() => setOpened(version.id)}
                onEdit={() => setEdited(version.name)}
              />
            ))}
          </Table>
        )}
        {more !== undefined && <Button onClick={more}>Older ones</Button>}
      </Panel>
      {opened !== undefined && (
        <VersionChanges key={opened} domain={domain} id={opened} versions={items ?? []} />
      )}
      <DevloveEditor
        key={edited ?? ""}
        domain={domain}
        viewset={edited ?? active?.name}
        isActive={edited === undefined || edited === active?.name}
        onStored={again}
      />
    </>
  );
}

/** The version that was active before, to which one rolls back. */
function lastActive(versions: readonly ViewsetVersion[]): ViewsetVersion | undefined {
  return versions
    .filter((one) => !one.is_active && one.when_obsoleted !== null)
    .toSorted((a, b) => String(b.when_obsoleted).localeCompare(String(a.when_obsoleted)))[0];
}

function VersionRow({
  version,
  mayWrite,
  doing,
  onActivate,
  onCompare,
  onEdit,
}: {
  readonly version: ViewsetVersion;
  readonly mayWrite: boolean;
  readonly doing: Doing;
  readonly onActivate: () => void;
  readonly onCompare: () => void;
  readonly onEdit: () => void;
}): JSX.Element {
  const { name, comment, when_created: made, is_active: isActive } = version;
  const { tone, text } = activationWords(version);
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>
        <Time at={made} />
      </td>
      <td>
        <Badge tone={tone}>{text}</Badge>
      </td>
      <td class="long">{visibleText(comment)}</td>
      <td>
        <div class="row">
          {!isActive && (
            <Button onClick={onCompare} label={`Compare ${name}`}>
              Compare
            </Button>
          )}
          <Button onClick={onEdit} label={`Devlove of ${name}`}>
            Devlove
          </Button>
          {mayWrite && !isActive && (
            <Confirm
              kind="main"
              question={`Serve ${name} on every host? What it would change is shown by Compare.`}
              doIt={`Serve ${name}`}
              label={`Activate ${name}`}
              disabled={doing.isBusy}
              onYes={onActivate}
            >
              Activate
            </Confirm>
          )}
        </div>
      </td>
    </tr>
  );
}
