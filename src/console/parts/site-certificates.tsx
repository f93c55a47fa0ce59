// The certificates of one deployment site: for which names, for how long, and whether its hosts have them.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { Certificate } from "../../wire/customer/certificate.ts";
import { at, send } from "../api.ts";
import { useAsked } from "../asked.ts";
import { useDoing } from "../doing.ts";
import { useSeen } from "../seen.ts";
import { useMayForAll } from "../session.ts";
import { validityOf } from "../validity.ts";
import { visibleText } from "../visible-text.ts";
import { CertificateUpload } from "./certificate-upload.tsx";
import { Opens } from "./opens.tsx";
import { Answer, Badge, Confirm, Panel, RefusalNote, Table, Time } from "./pieces.tsx";
import { provedEveryMs, VaultState } from "./vault-state.tsx";

export function SiteCertificates({
  name16,
  name,
  domains,
}: {
  readonly name16: string;
  readonly name: string;
  readonly domains: readonly string[];
}): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const isSeen = useSeen(place);
  const path = at`/upload/certificates/${name16}/`;
  const asked = useAsked<readonly Certificate[]>(isSeen ? path : undefined, {
    topics: ["certificates"],
    everyMs: provedEveryMs,
  });
  const mayWrite = useMayForAll("write");
  const doing = useDoing();
  const remove = (id: number): void => {
    void doing.run(async () => {
      await send("DELETE", at`/upload/certificates/${name16}/${id}/`);
      asked.again();
    });
  };
  return (
    <div ref={place}>
      <Panel title={name} beside={<span class="quiet">{domains.join(", ")}</span>}>
        <Answer asked={asked}>
          {(found) =>
            found.length === 0 ? (
              <p class="quiet">There is no certificate here: nothing is served by TLS.</p>
            ) : (
              <Table
                caption={`Certificates of ${name}`}
                heads={["Names", "Valid", "Until", "State", "Added", "SHA-256", ""]}
              >
                {found.map((certificate) => (
                  <CertificateRow
                    key={certificate.id}
                    certificate={certificate}
                    isBusy={doing.isBusy}
                    onRemove={mayWrite ? remove : undefined}
                  />
                ))}
              </Table>
            )
          }
        </Answer>
        <RefusalNote failure={doing.failure} />
        {mayWrite && (
          <Opens title={`Upload a certificate for ${name}`}>
            {() => <CertificateUpload path={path} name={name} onDone={asked.again} />}
          </Opens>
        )}
      </Panel>
    </div>
  );
}

const fingerprintShown = 16;

function CertificateRow({
  certificate,
  isBusy,
  onRemove,
}: {
  readonly certificate: Certificate;
  readonly isBusy: boolean;
  readonly onRemove: ((id: number) => void) | undefined;
}): JSX.Element {
  const { id, not_before: from, not_after: until, fingerprint, state, error } = certificate;
  const names = certificate.names.map(visibleText);
  const validity = validityOf(Date.parse(from), Date.parse(until), Date.now());
  return (
    <tr>
      <th scope="row" class="wraps">
        {names.join(", ")}
      </th>
      <td>
        <Badge tone={validity.tone}>{validity.text}</Badge>
      </td>
      <td>
        <Time at={until} />
      </td>
      <td>
        <VaultState state={state} error={error} />
      </td>
      <td>
        <Time at={certificate.when_created} />
      </td>
      <td class="mono" title={fingerprint}>
        {fingerprint.slice(0, fingerprintShown)}…
      </td>
      <td>
        {onRemove !== undefined && (
          <Confirm
            question={`Remove the certificate for ${names.join(", ")}? What no other certificate of the site is for is then not served by TLS.`}
            doIt="Remove the certificate"
            label={`Remove the certificate for ${names.join(", ")}, until ${until}`}
            disabled={isBusy}
            onYes={() => onRemove(id)}
          >
            Remove
          </Confirm>
        )}
      </td>
    </tr>
  );
}
