//! `toolcell receipts`: the log, or one entry of it.

use toolcell_types::ReceiptItem;

use crate::args::ReceiptsArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reach::reach_any;
use crate::render;

/// Lists entries, or writes one envelope.
pub(crate) async fn receipts(args: &ReceiptsArgs) -> Result<Exit, Failure> {
    let client = reach_any(&args.reach).await?.client;
    let (after, limit) = match args.index {
        Some(index) => (index.checked_sub(1), Some(1)),
        None => (args.after, args.limit),
    };
    let page = client.receipts(after, limit).await.map_err(Failure::of_client)?;
    match args.index {
        Some(index) => {
            let found = page.receipts.iter().find(|item| item.index == index);
            let ReceiptItem { envelope, .. } = found.ok_or_else(|| missing(index))?;
            render::value(envelope)?;
        }
        None if args.json => render::value(&page)?,
        None => render::out(render::receipts(&page).as_bytes())?,
    }
    Ok(Exit::Ok)
}

fn missing(index: u64) -> Failure {
    let error = anyhow::anyhow!("there is no entry {index} in the log");
    Failure::new(Exit::Failed, error, "list what there is: toolcell receipts")
}
