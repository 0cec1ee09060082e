//! A provider whose models repeat the last message.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::name::{ModelContext, ProviderEntry, ProviderModel};
use super::{ChatModel, ChatReply, ChatRequest, FinishReason, ModelError};

/// The entry in the table of providers.
pub(crate) const PROVIDER: ProviderEntry = ProviderEntry {
    example: "parrot",
    ..ProviderEntry::new(|context| Box::pin(async move { Ok(build(&context)) }))
};

fn build(context: &ModelContext<'_>) -> ProviderModel {
    let model = EchoModel { id: context.full_name.to_string() };
    ProviderModel::new(Arc::new(model), "example".to_owned())
}

/// A model that repeats what it is asked.
struct EchoModel {
    id: String,
}

impl ChatModel for EchoModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let text = request.messages.last().map(|message| message.text.to_string());
        let reply = ChatReply::plain(text.unwrap_or_default(), FinishReason::Stop);
        Box::pin(async { Ok(reply) })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async { Ok(()) })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use selftest_text::redact::Redactor;

    use crate::locator::{FetchObserver, ModelLocator};
    use crate::model_files::TransferProgress;
    use crate::model_settings::{ModelEnvironment, ModelSettings};
    use crate::{ChatRequest, PromptMessage};

    struct Ignored;

    impl FetchObserver for Ignored {
        fn announce(&self, _: &str) {}

        fn progress(&self, _: TransferProgress) {}
    }

    #[tokio::test]
    async fn a_new_provider_is_found_by_its_prefix() {
        let (environment, settings) = (ModelEnvironment::default(), ModelSettings::default());
        let redactor = Arc::new(Redactor::new(Vec::<String>::new()));
        let mut locator = ModelLocator::new(environment, settings, Path::new("."), None, redactor);
        let model = locator.model("example/parrot", &Ignored).await.unwrap();
        assert_eq!(model.id(), "example/parrot");
        let request =
            ChatRequest::first_token(vec![PromptMessage::user("hello")], Vec::new(), 0, 2048);
        assert_eq!(model.chat(&request).await.unwrap().text, "hello");
    }
}
