import type { Answer } from "./results";

export default function View({ answer }: { answer: Answer }) { return <div class="rpad">{answer.rows.length}</div>; }
